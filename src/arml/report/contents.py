"""All of a report as plain data: the source for the terminal, the files and the page."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from arml.lab.run_kinds import Suite
from arml.report.charts.answer_charts import answer_charts
from arml.report.charts.chart import Chart
from arml.report.charts.one_subject import subject_charts
from arml.report.charts.over_subjects import charts_over_subjects
from arml.report.charts.suite_chart import suite_chart
from arml.report.commands import Defaults, Repeat, repeats
from arml.report.data.answer import make_answer
from arml.report.data.comparison import Comparison, comparisons, differing_settings
from arml.report.data.final_weights import matrices
from arml.report.data.paper import FIGURE_2, FIGURE_3, FIGURE_4
from arml.report.data.records import Collected
from arml.report.data.scarcity import group_by_scarcity
from arml.report.data.suite_scores import leaderboard, world_results
from arml.report.data.topics import middle_level, topics
from arml.report.data.verdict import Verdicts, verdicts
from arml.report.tables.answer_text import AnswerText, answer_text
from arml.report.tables.labels_sheet import labels_sheet
from arml.report.tables.main_tasks import main_task_sheets
from arml.report.tables.misleading_source import misleading_sheets
from arml.report.tables.related_tasks import matrix_sheet, related_sheets
from arml.report.tables.results import result_sheet
from arml.report.tables.rows import make_rows
from arml.report.tables.saving_sentences import saving_sentences
from arml.report.tables.scarcity_sheets import scarcity_sheets
from arml.report.tables.sheet import Cell, Sheet, text
from arml.report.tables.suite_sheets import leaderboard_sheet, worlds_sheet
from arml.report.tables.verdict_sheet import verdict_sheet
from arml.report.titles import experiment_title, line_title, subject_title


class Section(NamedTuple):
    """A section of the report."""

    title: str
    sentences: list[str]
    sheets: list[Sheet]
    charts: list[Chart]
    details: Sequence[Sheet] = ()
    """Further tables, folded on the page."""
    warnings: Sequence[str] = ()
    """Cautions to read before anything else."""


class AnswerSection(NamedTuple):
    """The answer of one experiment, with its two small figures."""

    text: AnswerText
    charts: list[Chart]


class Report(NamedTuple):
    """All of a report."""

    overview: str
    """A sentence on what was compared."""
    answers: list[AnswerSection]
    """What to do, per experiment."""
    sections: list[Section]
    remarks: list[str]
    """Files that were not used and runs that failed, with the reason."""
    environments: Sheet
    repeats: list[Repeat]

    def sheets(self) -> list[Sheet]:
        """All tables."""
        return [sheet for section in self.sections for sheet in (*section.sheets, *section.details)]

    def charts(self) -> list[Chart]:
        """All figures."""
        return [chart for section in self.sections for chart in section.charts]


def make_report(collected: Collected, *, paper: bool, defaults: Defaults, charts: Sequence[Chart] = ()) -> Report:
    """The report on the collected runs; finished ``charts`` from elsewhere join those over several subjects."""
    everything = comparisons(collected.recorded, collected.failed)
    compared = [one for one in everything if one.subject.setting != Suite.setting]
    found = {comparison.subject: verdicts(comparison) for comparison in compared}
    sections = [_subject_section(comparison, found[comparison.subject], paper=paper) for comparison in compared]
    return Report(
        _overview(collected, everything),
        make_answers(compared),
        _make_keys_unique(
            [*_suite_sections(everything), *sections, *_sections_over_subjects(compared, charts, paper=paper)]
        ),
        [*_remarks(collected)],
        _environments(collected),
        repeats([one.run for one in collected.recorded], defaults),
    )


def _suite_sections(compared: Sequence[Comparison]) -> Iterator[Section]:
    """One section for all worlds of the suite: a section each would flood the page."""
    results = world_results(compared)
    if results:
        scores = leaderboard(results)
        sheets = [leaderboard_sheet(scores, len(results)), worlds_sheet(results)]
        yield Section("Suite of known truths", [], sheets, [suite_chart(scores)])


def _overview(collected: Collected, compared: Sequence[Comparison]) -> str:
    finished = sum(len(runs) for comparison in compared for runs in comparison.finished.values())
    lines = {line for comparison in compared for line in comparison.finished}
    seeds = {run.seed for comparison in compared for run in comparison.runs}
    titles = "; ".join(subject_title(comparison.subject) for comparison in compared[:3])
    more = f" and {len(compared) - 3} more" if len(compared) > 3 else ""
    if not compared:
        return "There is no record of a run yet."
    return (
        f"{_count(len(lines), 'combination')} of learner and method on {titles}{more}: "
        f"{_count(len(collected.recorded), 'run')} with {_count(len(seeds), 'seed')}, {finished} in the tables, "
        f"{len(collected.failed)} failed."
    )


def make_answers(compared: Sequence[Comparison]) -> list[AnswerSection]:
    """The answer of every experiment; figures of different experiments have different keys."""
    found = [make_answer(comparison, topics(compared)) for comparison in compared]
    seen: Counter[str] = Counter()
    return [AnswerSection(answer_text(one), [_rename(chart, seen) for chart in answer_charts(one)]) for one in found]


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _subject_section(comparison: Comparison, found: Sequence[Verdicts], *, paper: bool) -> Section:
    sheets = [result_sheet(comparison.subject, make_rows(comparison), paper=paper)]
    judged = [verdict_sheet(one) for one in found if one.were_tried()]
    untried = [verdict_sheet(one) for one in found if one.tasks and not one.were_tried()]
    num_tasks = len(found[0].tasks) if found else 0
    return Section(
        experiment_title(comparison.subject, num_tasks),
        [],
        [*sheets, *judged[:1], *related_sheets([comparison], paper=paper), *misleading_sheets([comparison])],
        subject_charts(comparison),
        [*judged[1:], *untried],
        [*_warnings(comparison)],
    )


def _warnings(comparison: Comparison) -> Iterator[str]:
    title = subject_title(comparison.subject)
    for name, values in differing_settings(comparison).items():
        yield (
            f"Caution: runs on {title} differ in {name} ({', '.join(values)}), and the table does not say so. Of two "
            "runs with the same line and seed it has the one with the lower validation error. Report such runs "
            "separately."
        )


def _sections_over_subjects(
    compared: Sequence[Comparison], charts: Sequence[Chart], *, paper: bool
) -> Iterator[Section]:
    figures = [*charts_over_subjects(compared), *charts]
    sheets = [
        *main_task_sheets(compared, paper=paper),
        *(labels_sheet(topic, middle_level(topic)) for topic in topics(compared)),
        *scarcity_sheets(compared),
        *(matrix_sheet(matrix) for matrix in matrices(compared)),
    ]
    sentences = [sentence for topic in topics(compared) for sentence in saving_sentences(topic, middle_level(topic))]
    from_paper = _paper_sentences(compared) if paper else []
    if figures or sheets:
        yield Section("Across labels, main tasks and cost", [*sentences, *from_paper], sheets, figures)


def _paper_sentences(compared: Sequence[Comparison]) -> list[str]:
    """What the paper says about its figures, where the report has the same figure."""
    settings = {topic.subject.setting for topic in topics(compared) if topic.has_reference()}
    scarce = {members[0].subject.setting for _, members in group_by_scarcity(compared)}
    sentences = {FIGURE_2: "ssl" in settings, FIGURE_3: "dg" in settings, FIGURE_4: "dg" in scarce}
    return [sentence for sentence, applies in sentences.items() if applies]


def _make_keys_unique(sections: Sequence[Section]) -> list[Section]:
    """Titles that differ only in punctuation have the same key and would share a file."""
    seen: Counter[str] = Counter()
    return [section._replace(charts=[_rename(chart, seen) for chart in section.charts]) for section in sections]


def _rename(chart: Chart, seen: Counter[str]) -> Chart:
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
    return Sheet("Environments of the runs", ("runs", *names), tuple(rows))
