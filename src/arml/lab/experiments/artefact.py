"""A table or figure as a list of comparisons, with what it takes and how it differs from the paper's."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from arml.lab.run import Run, Subject

MANY = 20
"""More subjects than these are counted by data set before training starts."""


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

    def runs(self, scale: str, seeds: int) -> dict[Run, float | None]:
        """Each run of any part with its measured seconds of one core; ``None``: nobody has measured it.

        They come seed by seed, so that an unfinished artefact can already be read.
        """
        found = {run: _seconds(part, run) for part in self.parts[scale]() for run in part.runs(seeds)}
        return dict(sorted(found.items(), key=lambda item: int(item[0].seed)))


class Plan(NamedTuple):
    """What a command is about to do."""

    runs: Sequence[Run]
    unfinished: Sequence[Run]
    seconds: float
    """Seconds of one core that the unfinished runs take."""
    unmeasured: int
    """Unfinished runs whose duration nobody has measured."""
    lines: Sequence[str]
    """Unfinished runs in words, a line per subject, or per data set if there are many subjects."""
    differences: Sequence[str]


def make_plan(
    runs: Mapping[Run, float | None], is_finished: Callable[[Run], bool], differences: Sequence[str] = ()
) -> Plan:
    """Which of ``runs``, given with their seconds, are left, and how long they take."""
    unfinished = [run for run in runs if not is_finished(run)]
    known = [seconds for run in unfinished if (seconds := runs[run]) is not None]
    subjects = [run.subject() for run in unfinished]
    names = [_name(subject) for subject in subjects]
    if len(set(names)) > MANY:
        names = [f"data set {subject.dataset}" for subject in subjects]
    return Plan(
        list(runs),
        unfinished,
        sum(known),
        len(unfinished) - len(known),
        [f"{name}: {count} runs" for name, count in Counter(names).items()],
        differences,
    )


def _seconds(part: Part, run: Any) -> float | None:
    return part.seconds.get(run.learner, part.seconds[""]) if part.seconds else None


def _name(subject: Subject) -> str:
    return ", ".join(part for part in (subject.dataset, subject.main, f"{subject.labels:g} labels or shots") if part)
