"""Leaderboard and errors as tables, and the section of the report."""

from report.data.test_suite_scores import MIXED, records, results

from arml.report.charts.suite_chart import suite_chart
from arml.report.contents import make_report
from arml.report.data.records import Collected
from arml.report.data.suite_scores import leaderboard
from arml.report.output.html import page
from arml.report.output.matplotlib_figures import draw_figure
from arml.report.tables.suite_sheets import brief_worlds_sheet, leaderboard_sheet, worlds_sheet


def texts(sheet):
    return [[cell.text for cell in row] for row in sheet.rows]


def test_the_leaderboard():
    sheet = leaderboard_sheet(leaderboard(results()), 3)
    assert texts(sheet)[0] == [
        "Gated ARML (ours)",
        "2.00 [2.00, 2.00]",
        "2.00 [2.00, 2.00]",
        "9.33 [9.33, 9.33]",
        "90 % [90, 90]",
        "1.00 [1.00, 1.00]",
        "3",
    ]
    assert "Gated ARML (ours): worst regret in all bad, worst harm in all bad." in sheet.notes


def test_errors_in_every_world():
    sheet = worlds_sheet(results())
    assert sheet.headings == ("world", "Main task only", "Uniform weights", "Oracle", "ARML", "Gated ARML (ours)", "n")
    rows = {row[0]: row[1:] for row in texts(sheet)}
    assert rows["mixed"] == ["30.5 ± 6.4", "28.5 ± 6.4", "18.5 ± 6.4", "23.5 ± 6.4", "19.5 ± 6.4", "2"]
    assert rows["all bad"][2] == ""
    assert [cell.strong for cell in sheet.rows[1]] == [False, False, False, True, False, False, False]


def test_the_chart_has_a_point_for_every_world_and_can_be_drawn():
    chart = suite_chart(leaderboard(results()))
    gated = next(dot for dot in chart.dots if dot.name == "Gated ARML (ours)")
    assert gated.values == {"mixed": 9, "all bad": -2, "real": 1}
    assert "worlds" in draw_figure(chart).axes[0].get_xlabel()


def test_a_report_has_one_section_for_all_worlds_and_one_command():
    made = records("mixed", MIXED) + records("other", MIXED)
    report = make_report(Collected(made, {}, []), paper=False, defaults=lambda run: ([], run))
    assert [section.title for section in report.sections] == ["Suite of known truths"]
    assert [sheet.title for sheet in report.sheets()] == [
        "Suite of known truths: scores over 2 worlds",
        "Suite of known truths: test error in % in every world",
    ]
    assert not report.answers
    (repeat,) = report.repeats
    assert repeat.command.startswith("arml suite --tier")
    assert "--worlds mixed other --methods uniform arml gated_arml --seeds 2" in repeat.command
    assert "Suite of known truths" in page(report)


def test_the_terminal_has_the_references_and_the_best_method():
    rows = {row[0]: row[1:] for row in texts(brief_worlds_sheet(results()))}
    assert rows["mixed"] == ["30.5", "28.5", "18.5", "19.5 Gated ARML (ours)"]
    assert rows["all bad"] == ["20.5", "40.5", "", "22.5 Gated ARML (ours)"]
