"""Comparisons -> the rows of result tables."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from arml.lab.run import Line, Run, Subject
from arml.lab.trace import Record, Recorded
from arml.report.data.comparison import Comparison, comparisons
from arml.report.data.measure import ERROR, Measure
from arml.report.data.paper import paper_figure
from arml.report.data.summary import Summary, paired_difference, summarise
from arml.report.titles import line_title


class Row(NamedTuple):
    """One line of the table: a learner with a method, over seeds."""

    line: Line
    metrics: dict[str, Summary]
    """Results on the test examples, ``"error"`` first; empty if no run has finished."""
    against: Summary | None
    """Paired difference of the error to equal weights on the same seeds; ``None`` for the reference itself."""
    chosen_by: str
    """The measure that chose the networks on validation examples."""
    chosen_against: Summary | None
    """Paired difference of that measure, unless it is the error; ``None`` for the reference itself."""
    weights: dict[str, Summary]
    """Final weight of each auxiliary task."""
    unfinished: int
    """Runs that have started and have no result yet."""
    failed: int
    """Runs that ended without a result."""
    diverged: int
    """Runs that ended because a loss or the network was not finite."""
    missing: int
    """Seeds that other lines have and this one lacks."""
    protocols: tuple[str, ...]
    """Which network was tested, and on what; one unless the runs differ."""
    paper: str
    yardsticks: dict[str, Summary]
    """Errors of simple models with the same labels; empty in records that have none."""
    overlap: float = 0.0
    """Overlap of the splits of different seeds, for which the intervals are corrected."""

    def title(self) -> str:
        """The line's title."""
        return line_title(self.line)


Tables = dict[Subject, list[Row]]


def tables(recorded: Sequence[Recorded], failed: Collection[Run] = ()) -> Tables:
    """The rows of a table for every subject among ``recorded``."""
    return {comparison.subject: make_rows(comparison) for comparison in comparisons(recorded, failed)}


def make_rows(comparison: Comparison) -> list[Row]:
    """The rows of one subject."""
    return [_row(comparison, line) for line in comparison.finished]


def _row(comparison: Comparison, line: Line) -> Row:
    reference, measure, overlap = comparison.reference[line], comparison.chosen_by(), comparison.overlap()

    def against(measure: str) -> Summary | None:
        if line == reference:
            return None
        ours, theirs = comparison.results(line, measure), comparison.results(reference, measure)
        return paired_difference(ours, theirs, overlap=overlap)

    return Row(
        line,
        _metrics([run.outcome for run in comparison.finished[line].values()], overlap),
        against("error"),
        measure,
        None if measure == "error" else against(measure),
        {task: summarise([*by_seed.values()]) for task, by_seed in comparison.weights(line).items()},
        comparison.unfinished[line],
        comparison.failed[line],
        comparison.diverged[line],
        comparison.num_missing_seeds(line),
        comparison.protocols(line),
        paper_figure(comparison.subject, line),
        _yardsticks([run.outcome for run in comparison.finished[line].values()]),
        overlap,
    )


def _metrics(outcomes: Sequence[Record], overlap: float) -> dict[str, Summary]:
    """The metrics that all seeds have: average precision is undefined where test examples have one class only."""
    names = [key for key in outcomes[0] if key.startswith("test_") and key != "test_error_last"] if outcomes else []
    common = [key for key in names if all(key in outcome for outcome in outcomes)]
    return {
        key.removeprefix("test_"): summarise([outcome[key] for outcome in outcomes], overlap=overlap) for key in common
    }


def _yardsticks(outcomes: Sequence[Record]) -> dict[str, Summary]:
    found = [outcome["yardsticks"] for outcome in outcomes if "yardsticks" in outcome]
    return {name: summarise([one[name] for one in found if name in one]) for name in (found[0] if found else ())}


def deciding_measure(rows: Sequence[Row]) -> Measure:
    """The measure that chose the networks, if all finished lines have it; else the error."""
    name = rows[0].chosen_by if rows else ERROR.name
    return Measure(name) if all(name in row.metrics for row in rows if row.metrics) else ERROR


def best_line(rows: Sequence[Row]) -> Line | None:
    """The line that is better than every other line by more than both intervals together, or ``None``.

    Grid search does not compete: it trains several times.
    """
    finished = [row for row in rows if row.metrics and row.line.method != "grid"]
    if len(finished) < 2:
        return None
    measure = deciding_measure(rows)
    found = {row.line: measure.mean_shortfall(row.metrics[measure.name]) for row in finished}
    first = min(found, key=lambda line: found[line].mean)
    return first if all(found[first].high < other.low for line, other in found.items() if line != first) else None


def as_json(tables: Mapping[Subject, Sequence[Row]]) -> list[dict[str, object]]:
    """Everything in the tables, for other programs; a missing interval is ``None``."""
    return [
        {
            "subject": {**subject._asdict(), "labels": subject.labels if math.isfinite(subject.labels) else "all"},
            "line": row.line._asdict(),
            "title": row.title(),
            "metrics": {name: _summary_json(summary) for name, summary in row.metrics.items()},
            "against": None if row.against is None else _summary_json(row.against),
            "chosen_by": row.chosen_by,
            "chosen_against": None if row.chosen_against is None else _summary_json(row.chosen_against),
            "weights": {name: _summary_json(summary) for name, summary in row.weights.items()},
            "unfinished": row.unfinished,
            "failed": row.failed,
            "diverged": row.diverged,
            "missing": row.missing,
            "protocols": row.protocols,
            "paper": row.paper,
            "yardsticks": {name: _summary_json(summary) for name, summary in row.yardsticks.items()},
        }
        for subject, rows in tables.items()
        for row in rows
    ]


def _summary_json(summary: Summary) -> dict[str, float | int | None]:
    half_width = summary.half_width if math.isfinite(summary.half_width) else None
    return {"mean": summary.mean, "half_width": half_width, "n": summary.n}
