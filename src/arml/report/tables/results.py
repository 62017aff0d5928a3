"""The table of a comparison: errors, differences, weights, and what has not finished."""

from collections.abc import Sequence

from arml.lab.run import Subject
from arml.report.data.paper import PROTOCOLS, has_figures
from arml.report.data.summary import FORMULA
from arml.report.tables.rows import Row, best
from arml.report.tables.sheet import Cell, Sheet, count, difference, number, text
from arml.report.titles import METRICS, subject_title

MANY = 4
"""Of more auxiliary tasks than this, the table shows the largest weights only."""
DIFFERENCE_NOTE = (
    "difference: paired on the same seeds; * where its interval excludes 0, not corrected for the number of lines"
)
FEW_SEEDS = 5
"""Below this many seeds a table reminds of it."""


def error_note(protocols: Sequence[str]) -> str:
    """What errors are: their formula, and which network was tested on what."""
    return f"error: {FORMULA}; {'; or '.join(protocols)}"


def result_sheet(subject: Subject, rows: Sequence[Row], *, paper: bool) -> Sheet:
    """The table of one subject."""
    known = paper and has_figures(subject)
    further = _further(rows)
    headings = ("", "error", "difference to uniform", *(METRICS.get(name, name) for name in further), "weights", "n")
    return Sheet(
        f"Test results in %: {subject_title(subject)}",
        headings + (("paper",) if known else ()),
        tuple(_cells(row, further, strong=row.line == best(rows), paper=known) for row in rows),
        _notes(subject, rows, paper=paper),
    )


def _cells(row: Row, further: Sequence[str], *, strong: bool, paper: bool) -> tuple[Cell, ...]:
    error = number(row.metrics["error"], strong=strong) if row.metrics else text("no finished run")
    others = [number(row.metrics.get(name)) for name in further]
    seeds = count(row.metrics["error"].n if row.metrics else 0, _remarks(row))
    cells = (text(row.title()), error, difference(row.against), *others, text(weights(row)), seeds)
    return cells + ((text(row.paper),) if paper else ())


def _remarks(row: Row) -> list[str]:
    counts = {"unfinished": row.unfinished, "failed": row.failed, "missing": row.missing}
    return [f"+{number} {what}" for what, number in counts.items() if number]


def weights(row: Row) -> str:
    """Mean final weights: all if they are few, else the largest."""
    ranked = sorted(row.weights, key=lambda name: -row.weights[name].mean) if len(row.weights) > MANY else row.weights
    return ", ".join(f"{name} {row.weights[name].mean:.2f}" for name in list(ranked)[:MANY]) + (
        " ..." if len(row.weights) > MANY else ""
    )


def _further(rows: Sequence[Row]) -> list[str]:
    """Metrics besides the error; the majority error is the same for all lines and stands below."""
    names = next((list(row.metrics) for row in rows if row.metrics), [])
    return [name for name in names if name not in ("error", "majority_error")]


def _notes(subject: Subject, rows: Sequence[Row], *, paper: bool) -> tuple[str, ...]:
    ways = dict.fromkeys(way for row in rows for way in row.protocols)
    notes = [error_note(list(ways)), DIFFERENCE_NOTE]
    majority = next((row.metrics["majority_error"] for row in rows if "majority_error" in row.metrics), None)
    if majority is not None:
        notes.append(f"Always answering the most frequent class (or the mean) has an error of {majority.mean:.2f} %.")
    if best(rows) is None:
        notes.append("No line is best beyond doubt: its interval overlaps that of another line.")
    most = max((row.metrics["error"].n for row in rows if row.metrics), default=0)
    if 0 < most < FEW_SEEDS:
        notes.append(f"n = {most}: few seeds. Intervals are wide, and the spread itself is hardly known.")
    if paper:
        known = has_figures(subject)
        notes.append(f"paper: {PROTOCOLS[subject.setting]}." if known else "paper: it has no table with this subject.")
    return tuple(notes)
