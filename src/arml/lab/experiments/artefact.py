"""A table or figure as a list of comparisons, with what it takes and how it differs from the paper's."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from arml.lab.run import Run, Subject


class Part(NamedTuple):
    """A comparison, as ``arml compare`` makes it."""

    base: Any
    """What all its runs have in common."""
    lines: Any
    """A ``Table`` of the setting's file: which lines, targets and numbers of labels."""
    seconds: Mapping[str, float]
    """Seconds of one core per run, by learner, as measured; the name ``""`` stands for all others; empty: unknown."""
    steps_of_weights: Mapping[str, float] = MappingProxyType({})
    """Step size of the weights, for methods for which a search chose another one than the base has."""

    def runs(self, seeds: int) -> list[Any]:
        """All runs, seed by seed."""
        runs: list[Any] = self.lines.runs(self.base, seeds)
        return [replace(run, weight_lr=self.steps_of_weights.get(run.method, run.weight_lr)) for run in runs]


@dataclass(frozen=True)
class Artefact:
    """A table or figure, at several scales."""

    title: str
    question: str
    """What it answers."""
    parts: Mapping[str, Callable[[], Sequence[Part]]]
    """Its comparisons by scale."""
    differences: Mapping[str, Sequence[str]]
    """Where the protocol at a scale is not the paper's."""
    seeds: Mapping[str, int]
    """Runs per line by scale, unless told otherwise."""

    def runs(self, scale: str, seeds: int) -> list[Run]:
        """All runs of all parts, each once, seed by seed, so that an unfinished artefact can already be read."""
        found = [run for part in self.parts[scale]() for run in part.runs(seeds)]
        return list(dict.fromkeys(sorted(found, key=lambda run: int(run.seed))))

    def seconds(self, scale: str) -> dict[tuple[Any, ...], float]:
        """Measured seconds of one core per run, by subject, learner and method."""
        return {
            _kind(run): part.seconds.get(run.learner, part.seconds[""])
            for part in self.parts[scale]()
            if part.seconds
            for run in part.runs(1)
        }


class Plan(NamedTuple):
    """What a command is about to do."""

    runs: Sequence[Run]
    unfinished: Sequence[Run]
    seconds: float
    """Seconds of one core that the unfinished runs take."""
    unmeasured: int
    """Unfinished runs whose duration nobody has measured."""
    lines: Sequence[str]
    """Unfinished runs in words, a line per subject."""
    differences: Sequence[str]


def make_plan(artefact: Artefact, scale: str, runs: Sequence[Run], is_finished: Callable[[Run], bool]) -> Plan:
    """Which of ``runs`` are left, and how long they take."""
    unfinished, seconds = [run for run in runs if not is_finished(run)], artefact.seconds(scale)
    known = [seconds[_kind(run)] for run in unfinished if _kind(run) in seconds]
    counts = Counter(run.subject() for run in unfinished)
    return Plan(
        runs,
        unfinished,
        sum(known),
        len(unfinished) - len(known),
        [f"{_name(subject)}: {count} runs" for subject, count in counts.items()],
        artefact.differences[scale],
    )


def _kind(run: Any) -> tuple[Any, ...]:
    return run.subject(), run.learner, run.method


def _name(subject: Subject) -> str:
    return ", ".join(part for part in (subject.dataset, subject.main, f"{subject.labels:g} labels or shots") if part)
