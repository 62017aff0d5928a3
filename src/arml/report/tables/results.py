"""The table of a comparison: errors, differences, weights, and unfinished runs."""

from collections.abc import Mapping, Sequence

from arml.lab.run import Subject
from arml.report.data.paper import PROTOCOLS, figures_at_other_labels, has_figures
from arml.report.data.summary import FORMULA, OVERLAP_FORMULA, Summary
from arml.report.tables.rows import Row, best_line
from arml.report.tables.sheet import Cell, Sheet, count, difference, format_weight, number, text
from arml.report.tables.simple_model_notes import simple_model_notes
from arml.report.titles import METRICS, YARDSTICKS, subject_title

MOST_WEIGHTS = 4
"""With more auxiliary tasks than this, the table shows only the largest weights."""
DIFFERENCE_NOTE = (
    "difference: paired on the same seeds; * where its interval excludes 0, not corrected for the number of lines"
)
FEW_SEEDS = 5
"""Below this many seeds, a note warns of wide intervals."""


def error_note(protocols: Sequence[str], *, overlap: float = 0.0) -> str:
    """A note on errors: their formula, and which network was tested on what."""
    return f"error: {OVERLAP_FORMULA if overlap else FORMULA}; {'; or '.join(protocols)}"


def result_sheet(subject: Subject, rows: Sequence[Row], *, paper: bool) -> Sheet:
    """The table of one subject."""
    known = paper and has_figures(subject)
    further = _further_metrics(rows)
    others = [heading for name in further for heading in _headings(name, rows)]
    headings = ("", "error", "difference to uniform", *others, "weights", "n")
    return Sheet(
        f"Test results in %: {subject_title(subject)}",
        headings + (("paper",) if known else ()),
        tuple(_cells(row, further, strong=row.line == best_line(rows), paper=known) for row in rows),
        _notes(subject, rows, paper=paper),
        wide=("weights", *(heading for heading in others if heading != METRICS.get(rows[0].chosen_by))),
    )


def _headings(name: str, rows: Sequence[Row]) -> list[str]:
    """The heading of a measure, and that of its difference to uniform weights if it chose the networks."""
    title = METRICS.get(name, name)
    return [title, f"difference in {title}"] if name == rows[0].chosen_by else [title]


def _cells(row: Row, further: Sequence[str], *, strong: bool, paper: bool) -> tuple[Cell, ...]:
    error = number(row.metrics["error"], strong=strong) if row.metrics else text("no finished run")
    others = [cell for name in further for cell in _measure_cells(row, name)]
    seeds = count(row.metrics["error"].n if row.metrics else 0, _remarks(row))
    cells = (text(row.title()), error, difference(row.against), *others, text(_weights_text(row)), seeds)
    return cells + ((text(row.paper),) if paper else ())


def _measure_cells(row: Row, name: str) -> list[Cell]:
    found = number(row.metrics.get(name))
    return [found, difference(row.chosen_against)] if name == row.chosen_by else [found]


def _remarks(row: Row) -> list[str]:
    counts = {"unfinished": row.unfinished, "failed": row.failed, "diverged": row.diverged, "missing": row.missing}
    return [f"+{number} {what}" for what, number in counts.items() if number]


def _weights_text(row: Row) -> str:
    """Mean final weights: all if they are few, else the largest."""
    ranked = (
        sorted(row.weights, key=lambda name: -row.weights[name].mean)
        if len(row.weights) > MOST_WEIGHTS
        else row.weights
    )
    return ", ".join(f"{name} {format_weight(row.weights[name].mean)}" for name in list(ranked)[:MOST_WEIGHTS]) + (
        " ..." if len(row.weights) > MOST_WEIGHTS else ""
    )


def _further_metrics(rows: Sequence[Row]) -> list[str]:
    """Metrics other than the error; the majority error is the same for all lines and stands in a note."""
    names = next((list(row.metrics) for row in rows if row.metrics), [])
    return [name for name in names if name not in ("error", "majority_error")]


def _yardstick_note(rows: Sequence[Row]) -> list[str]:
    """The errors of simple models; in records without them, that of always answering the same."""
    known = max((row.yardsticks for row in rows), key=_num_seeds, default={})
    if known:
        errors = (f"{YARDSTICKS.get(name, name)} {summary.format(2)} %" for name, summary in known.items())
        return [f"Yardsticks: {', '.join(errors)}."]
    majority = next((row.metrics["majority_error"] for row in rows if "majority_error" in row.metrics), None)
    if majority is None:
        return []
    return [f"Always predicting the most frequent class (or the mean) gives an error of {majority.mean:.2f} %."]


def _num_seeds(yardsticks: Mapping[str, Summary]) -> int:
    return max((summary.n for summary in yardsticks.values()), default=0)


def _notes(subject: Subject, rows: Sequence[Row], *, paper: bool) -> tuple[str, ...]:
    protocols = dict.fromkeys(protocol for row in rows for protocol in row.protocols)
    overlap = max((row.overlap for row in rows), default=0.0)
    notes = [error_note(list(protocols), overlap=overlap), DIFFERENCE_NOTE, *simple_model_notes(rows)]
    notes += _yardstick_note(rows)
    if best_line(rows) is None:
        notes.append("No line is clearly best: the interval of the lowest error overlaps that of another line.")
    most = max((row.metrics["error"].n for row in rows if row.metrics), default=0)
    if 0 < most < FEW_SEEDS:
        notes.append(f"n = {most}: few seeds. Intervals are wide, and the spread itself is uncertain.")
    if paper:
        known = has_figures(subject)
        notes.append(f"paper: {PROTOCOLS[subject.setting]}." if known else _paper_note(subject))
    return tuple(notes)


def _paper_note(subject: Subject) -> str:
    """The paper's figures with another number of labels, if it has such a table."""
    if (found := figures_at_other_labels(subject)) is None:
        return "paper: no table with this subject."
    labels, figures = found
    listed = "; ".join(f"{name} {figure}" for name, figure in figures.items())
    return f"paper, with {labels} labels: {listed}. {PROTOCOLS[subject.setting]}."
