"""Several main tasks side by side: the paper's PACS table, targets as columns."""

from collections import defaultdict
from collections.abc import Sequence

from arml.lab.run import Line
from arml.report.data.comparison import Comparison
from arml.report.data.measure import ERROR, Measure
from arml.report.data.paper import PROTOCOLS, has_figures, paper_figure
from arml.report.data.summary import Summary, summarise
from arml.report.tables.results import result_note
from arml.report.tables.sheet import Cell, Sheet, number, text
from arml.report.titles import labels_title, line_title, order


def main_task_sheets(compared: Sequence[Comparison], *, paper: bool) -> list[Sheet]:
    """A table for each data set and number of labels with several main tasks or target domains."""
    grouped: dict[tuple[str, str, float], list[Comparison]] = defaultdict(list)
    for comparison in compared:
        setting, dataset, _, labels = comparison.subject
        grouped[setting, dataset, labels].append(comparison)
    return [sheet for members in grouped.values() if len(members) > 1 for sheet in _sheets(members, paper=paper)]


def _sheets(members: Sequence[Comparison], *, paper: bool) -> list[Sheet]:
    """By the measure that all of them are decided by, and by the error, which the paper has."""
    measures = {comparison.measure() for comparison in members}
    common = measures if len(measures) == 1 else set()
    return [_sheet(members, measure, paper=paper) for measure in dict.fromkeys([*common, ERROR])]


def _sheet(members: Sequence[Comparison], measure: Measure, *, paper: bool) -> Sheet:
    subject = members[0].subject
    with_paper = paper and measure.is_error() and any(has_figures(comparison.subject) for comparison in members)
    mains = [comparison.subject.main for comparison in members]
    lines = sorted({line for comparison in members for line in comparison.finished}, key=order)
    protocols = list(dict.fromkeys(one for comparison in members for one in comparison.protocols()))
    what = "target domains" if subject.setting == "dg" else "main tasks"
    return Sheet(
        f"Test {measure.title()} in % over {what}: {subject.dataset}, {labels_title(subject)}",
        ("", *mains, "mean", *((f"paper: {main}" for main in mains) if with_paper else ())),
        tuple(_row(members, measure, line, paper=with_paper) for line in lines),
        (
            result_note(protocols, measure),
            f"mean: over {what} for each seed that all of them have, then over seeds",
            *((f"paper: {PROTOCOLS[subject.setting]}.",) if with_paper else ()),
        ),
    )


def _row(members: Sequence[Comparison], measure: Measure, line: Line, *, paper: bool) -> tuple[Cell, ...]:
    found = [comparison.results(line, measure.name) for comparison in members]
    cells = [number(summarise([*by_seed.values()])) if by_seed else text("no finished run") for by_seed in found]
    theirs = [text(paper_figure(comparison.subject, line)) for comparison in members] if paper else []
    return (text(line_title(line)), *cells, number(mean_over_mains(found)), *theirs)


def mean_over_mains(results: Sequence[dict[int, float]]) -> Summary | None:
    """The mean over main tasks for each seed that all of them have, then over seeds.

    >>> print(mean_over_mains([{0: 1.0, 1: 2.0}, {0: 3.0}]))
    2.00
    """
    seeds = sorted(set.intersection(*(set(by_seed) for by_seed in results)))
    return summarise([sum(by_seed[seed] for by_seed in results) / len(results) for seed in seeds]) if seeds else None
