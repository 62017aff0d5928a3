"""The table of a comparison: results, differences, weights, and unfinished runs."""

from collections.abc import Mapping, Sequence

from arml.lab.run import Subject
from arml.report.data.measure import ERROR, Measure
from arml.report.data.paper import PROTOCOLS, figures_at_other_labels, has_figures
from arml.report.data.summary import FORMULA, OVERLAP_FORMULA, Summary
from arml.report.tables.rows import Row, best_line, deciding_measure
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


def result_note(protocols: Sequence[str], measure: Measure = ERROR, *, overlap: float = 0.0) -> str:
    """A note on results: their formula, and which network was tested on what."""
    return f"{measure.title()}: {OVERLAP_FORMULA if overlap else FORMULA}; {'; or '.join(protocols)}"


def result_sheet(subject: Subject, rows: Sequence[Row], *, paper: bool) -> Sheet:
    """The table of one subject."""
    known = paper and has_figures(subject)
    measure = deciding_measure(rows)
    further = _further_metrics(rows, measure)
    others = [heading for name in further for heading in _headings(name)]
    headings = ("", measure.title(), "difference to uniform", *others, "weights", "n")
    return Sheet(
        f"Test results in %: {subject_title(subject)}",
        headings + ((_paper_heading(measure),) if known else ()),
        tuple(_cells(row, measure, further, strong=row.line == best_line(rows), paper=known) for row in rows),
        _notes(subject, rows, paper=paper),
        wide=("weights", *(heading for heading in others if heading != ERROR.title())),
    )


def _paper_heading(measure: Measure) -> str:
    return "paper" if measure.is_error() else "paper: error"


def _headings(name: str) -> list[str]:
    """The heading of a further measure, and that of its difference to uniform weights if it is the error."""
    title = METRICS.get(name, name)
    return [title, f"difference in {title}"] if name == ERROR.name else [title]


def _cells(row: Row, measure: Measure, further: Sequence[str], *, strong: bool, paper: bool) -> tuple[Cell, ...]:
    first = number(row.metrics[measure.name], strong=strong) if row.metrics else text("no finished run")
    against = difference(row.against if measure.is_error() else row.chosen_against)
    others = [cell for name in further for cell in _measure_cells(row, name)]
    seeds = count(row.metrics["error"].n if row.metrics else 0, _remarks(row))
    cells = (text(row.title()), first, against, *others, text(_weights_text(row)), seeds)
    return cells + ((text(row.paper),) if paper else ())


def _measure_cells(row: Row, name: str) -> list[Cell]:
    found = number(row.metrics.get(name))
    return [found, difference(row.against)] if name == ERROR.name else [found]


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


def _further_metrics(rows: Sequence[Row], measure: Measure) -> list[str]:
    """Metrics other than the first; the majority error is the same for all lines and stands in a note."""
    names = next((list(row.metrics) for row in rows if row.metrics), [])
    return [name for name in names if name not in (measure.name, "majority_error")]


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
    measure = deciding_measure(rows)
    notes = [result_note(list(protocols), measure, overlap=overlap), DIFFERENCE_NOTE, *simple_model_notes(rows)]
    notes += _yardstick_note(rows)
    if best_line(rows) is None:
        best = f"{'lowest' if measure.is_error() else 'highest'} {measure.title()}"
        notes.append(f"No line is clearly best: the interval of the {best} overlaps that of another line.")
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
