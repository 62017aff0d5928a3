"""Comparisons, cells, charts and reports from records on disk."""

from arml.report.charts.one_subject import subject_charts
from arml.report.charts.over_subjects import charts_over_subjects
from arml.report.contents import make_report
from arml.report.data.comparison import comparisons
from arml.report.data.records import collect


def compare(path):
    """The comparisons among all records below ``path``."""
    return comparisons(collect([path]).recorded)


def cell_texts(sheet):
    """The words and numbers of a sheet, row by row."""
    return [[cell.text for cell in row] for row in sheet.rows]


def make_charts(path):
    """All charts on what is below ``path``, by key."""
    compared = compare(path)
    charts = [chart for comparison in compared for chart in subject_charts(comparison)]
    return {chart.key: chart for chart in [*charts, *charts_over_subjects(compared)]}


def report_on(path, *, paper=False, charts=()):
    """The report on what is below ``path``, with commands that use no preset."""
    return make_report(collect([path]), paper=paper, defaults=lambda run: ([], type(run)()), charts=charts)
