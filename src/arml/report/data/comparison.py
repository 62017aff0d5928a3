"""Records grouped by subject: line by line, seed by seed."""

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import NamedTuple

from arml.lab.run import Line, Run, Subject
from arml.lab.trace import Record, Recorded, divergence, result
from arml.report.data.measure import ERROR, Measure
from arml.report.data.summary import Seeds
from arml.report.titles import MAIN_ONLY, order

MOST_TESTED = 100_000
"""Test examples beyond which an error counts as if it changed gradually."""


class Finished(NamedTuple):
    """A run with a result."""

    recorded: Recorded
    outcome: Record


@dataclass
class Comparison:
    """All runs with one subject."""

    subject: Subject
    finished: dict[Line, dict[int, Finished]] = field(default_factory=dict)
    """For every line, in the order of tables, the run of each seed that has a result."""
    reference: dict[Line, Line] = field(default_factory=dict)
    """The line with equal weights that a line is compared with."""
    unfinished: dict[Line, int] = field(default_factory=lambda: defaultdict(int))
    """Runs without a result that may still be in progress."""
    failed: dict[Line, int] = field(default_factory=lambda: defaultdict(int))
    diverged: dict[Line, int] = field(default_factory=lambda: defaultdict(int))
    """Runs that ended because a loss or the network was not finite."""
    begun: dict[Line, set[int]] = field(default_factory=lambda: defaultdict(set))
    """Seeds with a record, with or without a result."""
    runs: list[Run] = field(default_factory=list)

    def errors(self, line: Line) -> dict[int, float]:
        """Test error in %, by seed."""
        return self.results(line, "error")

    def results(self, line: Line, measure: str) -> dict[int, float]:
        """A measure on the test examples, by seed; seeds without it are left out."""
        outcomes = {seed: run.outcome for seed, run in self.finished.get(line, {}).items()}
        key = f"test_{measure}"
        return {seed: float(outcome[key]) for seed, outcome in outcomes.items() if key in outcome}

    def chosen_by(self) -> str:
        """The measure that chose the networks; the error if they were chosen by several."""
        measures = {run.measure() for run in self.runs}
        return measures.pop() if len(measures) == 1 else "error"

    def measure(self) -> Measure:
        """What the comparison is decided by: the measure that chose the networks, if all results have it."""
        key = f"test_{self.chosen_by()}"
        return Measure(self.chosen_by()) if all(key in outcome for outcome in self._outcomes()) else ERROR

    def shortfalls(self, line: Line) -> dict[int, float]:
        """What is compared, by seed; less is better."""
        measure = self.measure()
        return {seed: measure.shortfall(value) for seed, value in self.results(line, measure.name).items()}

    def overlap(self) -> float:
        """The overlap of the splits of different seeds, for ``summarise``."""
        return max((run.overlap() for run in self.runs), default=0.0)

    def seeds(self) -> Seeds:
        """How the results of different seeds hang together, and in which steps they come."""
        return Seeds(self.overlap(), self._resolution())

    def _resolution(self) -> float:
        """By how much one test example changes an error: each of r is a share with the denominator r, or less."""
        if self.is_numeric() or not self.measure().is_error():
            return 0.0
        errors = [value for outcome in self._outcomes() for value in _test_errors(outcome)]
        shares = (Fraction(error / 100).limit_denominator(MOST_TESTED) for error in errors if math.isfinite(error))
        return 100 / max((share.denominator for share in shares), default=MOST_TESTED)

    def _outcomes(self) -> list[Record]:
        return [run.outcome for runs in self.finished.values() for run in runs.values()]

    def is_numeric(self) -> bool:
        """Whether the main target is a number; its error is 100 (1 - R²), the share of variance not explained."""
        return any("test_rmse" in outcome for outcome in self._outcomes())

    def limit(self) -> float:
        """The largest possible result: 100 % for classes; the error of numbers has no limit."""
        return math.inf if self.is_numeric() else 100.0

    def weights(self, line: Line) -> dict[str, dict[int, float]]:
        """Final weight of each auxiliary task, by seed."""
        found: dict[str, dict[int, float]] = defaultdict(dict)
        for seed, run in self.finished.get(line, {}).items():
            for task, weight in run.outcome["weights"].items():
                found[task][seed] = weight
        return found

    def num_missing_seeds(self, line: Line) -> int:
        """How many seeds other lines have and this one has no record of."""
        return len(set().union(*self.begun.values()) - self.begun[line])

    def protocols(self, line: Line | None = None) -> tuple[str, ...]:
        """Which network was tested, and on what, in the runs of ``line`` or of all lines; each protocol once."""
        return tuple(dict.fromkeys(run.protocol() for run in self.runs if line is None or run.line() == line))

    def main_only_line(self) -> Line | None:
        """The line that sees the main task alone, if it was run."""
        return next((line for line in self.finished if line.learner in MAIN_ONLY and self.finished[line]), None)

    def lines_with(self, methods: Collection[str]) -> list[Line]:
        """Finished lines with one of these methods and all auxiliary tasks."""
        return [line for line, runs in self.finished.items() if line.method in methods and runs and not line.variant]


def _test_errors(outcome: Record) -> list[float]:
    """The test errors in a record: the run's own, and those of constant answers."""
    found = {"test_error": outcome["test_error"], "test_majority_error": outcome.get("test_majority_error", 0.0)}
    return [*map(float, found.values()), *map(float, outcome.get("yardsticks", {}).values())]


def comparisons(recorded: Sequence[Recorded], failed: Collection[Run] = ()) -> list[Comparison]:
    """A comparison for every subject among ``recorded``."""
    found: dict[Subject, Comparison] = {}
    for one in recorded:
        subject = one.run.subject()
        _add(found.setdefault(subject, Comparison(subject)), one, one.run in failed)
    return [_sort(found[subject]) for subject in sorted(found)]


def _add(comparison: Comparison, one: Recorded, failed: bool) -> None:
    line, outcome = one.run.line(), result(one.records)
    comparison.runs.append(one.run)
    comparison.reference[line] = one.run.reference()
    comparison.begun[line].add(one.run.seed)
    by_seed = comparison.finished.setdefault(line, {})
    if outcome is None:
        ended = comparison.failed if failed else comparison.unfinished
        (ended if divergence(one.records) is None else comparison.diverged)[line] += 1
        return
    # Several runs with the same line and seed are points of a grid: the best one on validation examples counts.
    new, old = Finished(one, outcome), by_seed.get(one.run.seed)
    by_seed[one.run.seed] = new if old is None else min(old, new, key=_score)


def _score(finished: Finished) -> tuple[float, str]:
    """Lower is better; a tie is broken by name, not by the order in which records are read."""
    run, outcome = finished.recorded.run, finished.outcome
    found = {key.removeprefix("validation_"): value for key, value in outcome.items() if key.startswith("validation_")}
    return run.score(found), run.method


def _sort(comparison: Comparison) -> Comparison:
    comparison.finished = {
        line: dict(sorted(comparison.finished[line].items())) for line in sorted(comparison.finished, key=order)
    }
    return comparison


_MAY_DIFFER = {"seed", "method", "learner", "leave_out", "window", "temperature"}


def differing_settings(comparison: Comparison) -> dict[str, list[str]]:
    """Settings that differ between runs without showing in the table, with their values."""
    values: dict[str, set[str]] = defaultdict(set)
    for run in comparison.runs:
        for name, value in asdict(run).items():
            values[name].add(str(value))
    return {name: sorted(seen) for name, seen in values.items() if len(seen) > 1 and name not in _MAY_DIFFER}
