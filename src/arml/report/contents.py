"""Everything a report says, as plain data: the terminal, the files and the page are made from it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from arml.report.charts.chart import Chart
from arml.report.charts.one_subject import of_comparison
from arml.report.charts.over_subjects import of_all
from arml.report.commands import Defaults, Repeat, repeats
from arml.report.data.comparison import Comparison, comparisons, differing_settings
from arml.report.data.paper import FIGURE_2, FIGURE_3, FIGURE_4
from arml.report.data.records import Collected
from arml.report.data.topics import middle_level, topics
from arml.report.data.verdict import Verdicts, verdicts
from arml.report.tables.labels_needed import labels_sheet, saving_sentences
from arml.report.tables.main_tasks import across_sheets
from arml.report.tables.misleading import misleading_sheets
from arml.report.tables.related import matrices, matrix_sheet, related_sheets
from arml.report.tables.results import result_sheet
from arml.report.tables.rows import rows_of
from arml.report.tables.scarcity import by_scarcity, scarcity_sheets
from arml.report.tables.sheet import Cell, Sheet, text
from arml.report.tables.verdict_words import in_words, overall, verdict_sheet
from arml.report.titles import line_title, subject_title


class Section(NamedTuple):
    """A part of the report."""

    title: str
    sentences: list[str]
    sheets: list[Sheet]
    charts: list[Chart]
    details: Sequence[Sheet] = ()
    """Tables for those who want to know more."""
    warnings: Sequence[str] = ()
    """What a reader has to mind before anything else."""


class Findings(NamedTuple):
    """What came out for a subject, in sentences."""

    title: str
    overall: list[str]
    tasks: list[str]


class Report(NamedTuple):
    """All of it."""

    overview: str
    """What was compared, in a sentence."""
    findings: list[Findings]
    """For every subject."""
    sections: list[Section]
    remarks: list[str]
    """Files that were not used and runs that failed, and why."""
    environments: Sheet
    repeats: list[Repeat]

    def sheets(self) -> list[Sheet]:
        """All tables."""
        return [sheet for section in self.sections for sheet in (*section.sheets, *section.details)]

    def charts(self) -> list[Chart]:
        """All figures."""
        return [chart for section in self.sections for chart in section.charts]


def make_report(collected: Collected, *, paper: bool, defaults: Defaults, charts: Sequence[Chart] = ()) -> Report:
    """The report on what was collected; finished ``charts`` from elsewhere join those over all subjects."""
    compared = comparisons(collected.recorded, collected.failed)
    found = {comparison.subject: verdicts(comparison) for comparison in compared}
    sections = [_of_subject(comparison, found[comparison.subject], paper=paper) for comparison in compared]
    return Report(
        _overview(collected, compared),
        [_findings(comparison, found[comparison.subject]) for comparison in compared],
        _with_unique_keys([*sections, *_of_all(compared, charts, paper=paper)]),
        [*_remarks(collected)],
        _environments(collected),
        repeats([one.run for one in collected.recorded], defaults),
    )


def _overview(collected: Collected, compared: Sequence[Comparison]) -> str:
    finished = sum(len(runs) for comparison in compared for runs in comparison.finished.values())
    lines = {line for comparison in compared for line in comparison.finished}
    seeds = {run.seed for comparison in compared for run in comparison.runs}
    named = "; ".join(subject_title(comparison.subject) for comparison in compared[:3])
    more = f" and {len(compared) - 3} more" if len(compared) > 3 else ""
    if not compared:
        return "There is no record of a run yet."
    return (
        f"{_many(len(lines), 'way')} of learning on {named}{more}: {_many(len(collected.recorded), 'run')} with "
        f"{_many(len(seeds), 'seed')}, {finished} finished and shown, {len(collected.failed)} failed."
    )


def _findings(comparison: Comparison, found: Sequence[Verdicts]) -> Findings:
    title = subject_title(comparison.subject)
    if not found:
        return Findings(title, ["No run with ARML has finished: there is no verdict on auxiliary tasks."], [])
    return Findings(title, overall(found[0]), in_words(found[0]))


def _many(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _of_subject(comparison: Comparison, found: Sequence[Verdicts], *, paper: bool) -> Section:
    sheets = [result_sheet(comparison.subject, rows_of(comparison), paper=paper)]
    judged = [verdict_sheet(one) for one in found if one.tasks]
    sentences = [sentence for one in found for sentence in overall(one)]
    return Section(
        subject_title(comparison.subject),
        sentences,
        [*sheets, *judged[:1], *related_sheets([comparison], paper=paper), *misleading_sheets([comparison])],
        of_comparison(comparison),
        judged[1:],
        [*_warnings(comparison)],
    )


def _warnings(comparison: Comparison) -> Iterator[str]:
    title = subject_title(comparison.subject)
    for name, values in differing_settings(comparison).items():
        yield (
            f"Mind: runs on {title} differ in {name} ({', '.join(values)}), which the table does not show; of two runs "
            "of one line and seed it has the one with the lower validation error. Report such runs apart."
        )


def _of_all(compared: Sequence[Comparison], charts: Sequence[Chart], *, paper: bool) -> Iterator[Section]:
    figures = [*of_all(compared), *charts]
    sheets = [
        *across_sheets(compared, paper=paper),
        *(labels_sheet(topic, middle_level(topic)) for topic in topics(compared)),
        *scarcity_sheets(compared),
        *(matrix_sheet(matrix) for matrix in matrices(compared)),
    ]
    sentences = [sentence for topic in topics(compared) for sentence in saving_sentences(topic, middle_level(topic))]
    theirs = _papers_words(compared) if paper else []
    if figures or sheets:
        yield Section("Over labels, main tasks and cost", [*sentences, *theirs], sheets, figures)


def _papers_words(compared: Sequence[Comparison]) -> list[str]:
    """What the paper says about its figures, where ours stand beside them."""
    settings = {topic.subject.setting for topic in topics(compared)}
    scarce = {members[0].subject.setting for _, members in by_scarcity(compared)}
    said = {FIGURE_2: "ssl" in settings, FIGURE_3: "dg" in settings, FIGURE_4: "dg" in scarce}
    return [words for words, applies in said.items() if applies]


def _with_unique_keys(sections: Sequence[Section]) -> list[Section]:
    """Names that differ only in signs would share a file."""
    seen: Counter[str] = Counter()
    return [section._replace(charts=[_renamed(chart, seen) for chart in section.charts]) for section in sections]


def _renamed(chart: Chart, seen: Counter[str]) -> Chart:
    seen[chart.key] += 1
    return chart if seen[chart.key] == 1 else chart._replace(key=f"{chart.key}-{seen[chart.key]}")


def _remarks(collected: Collected) -> Iterator[str]:
    for path, reason in collected.skipped:
        yield f"skipped {path}: {reason}"
    for run, reason in collected.failed.items():
        yield f"failed: {subject_title(run.subject())}, {line_title(run.line())}, seed {run.seed}: {reason}"


def _environments(collected: Collected) -> Sheet:
    counted = Counter(tuple(sorted(one.environment.items())) for one in collected.recorded)
    names = sorted({name for environment in counted for name, _ in environment})
    rows = [
        (Cell(f"{n}", n), *(text(str(dict(environment).get(name, ""))) for name in names))
        for environment, n in counted.most_common()
    ]
    return Sheet("Where the runs were made", ("runs", *names), tuple(rows))
