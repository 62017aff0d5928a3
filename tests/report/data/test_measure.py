"""Experiments whose networks are chosen by average precision are decided by it, whatever the errors say."""

from dataclasses import replace

import pytest
from report.made_records import make_recorded

from arml.lab.run import Line
from arml.lab.run_kinds import MultiLabel
from arml.report.charts.one_subject import result_chart
from arml.report.charts.over_subjects import labels_chart
from arml.report.data.answer import Advice, make_answer
from arml.report.data.comparison import comparisons
from arml.report.data.labels_needed import saving
from arml.report.data.measure import Measure
from arml.report.data.topics import topics
from arml.report.data.verdict import verdicts
from arml.report.tables.answer_text import answer_text
from arml.report.tables.labels_sheet import labels_sheet
from arml.report.tables.rows import best_line, make_rows
from arml.report.tables.saving_sentences import saving_sentences
from arml.report.tables.verdict_sheet import verdict_sheet

TASKS = ("Young", "Bald")
LINES = {
    "alone": {"learner": "main_only", "method": "uniform"},
    "uniform": {"method": "uniform"},
    "agreement": {"method": "agreement"},
    "without_bald": {"method": "uniform", "leave_out": ("Bald",)},
    "without_young": {"method": "uniform", "leave_out": ("Young",)},
}
PRECISIONS = {
    "alone": [40.0, 40.4, 39.8],
    "uniform": [50.0, 50.3, 49.9],
    "agreement": [60.0, 60.2, 59.7],
    "without_bald": [55.0, 55.4, 55.1],
    "without_young": [43.0, 43.2, 42.8],
}
ERRORS = {"alone": 5.0, "uniform": 6.0, "agreement": 7.0, "without_bald": 6.5, "without_young": 6.2}
"""They stand in the opposite order: with few positives, always "no" errs least."""


def faces(precisions, *, labels=60, measured="test_average_precision"):
    """Records of one main attribute of CelebA, line by line and seed by seed."""
    found = []
    for name, by_seed in precisions.items():
        for seed, value in enumerate(by_seed):
            run = MultiLabel(dataset="celeba", main="Smiling", aux=TASKS, labels=labels, seed=seed, **LINES[name])
            used = [task for task in TASKS if task not in run.leave_out and run.learner != "main_only"]
            one = make_recorded(ERRORS[name] + 0.01 * seed, run=run, weights=dict.fromkeys(used, 1.0))
            one.records[-1][measured] = value
            found.append(one)
    return found


@pytest.fixture
def comparison():
    (found,) = comparisons(faces(PRECISIONS))
    return found


def test_the_highest_average_precision_is_recommended_though_its_error_is_the_highest(comparison):
    answer = make_answer(comparison)
    assert (answer.advice, answer.line) == (Advice.LINE, Line("joint", "agreement"))
    assert answer.result.mean == pytest.approx(59.967, abs=1e-3)
    text = answer_text(answer)
    instead = "average precision instead of 40.1 % on the main task alone"
    assert text.headline == f"Train with Agreement: 60.0 % {instead}; drop Bald; keep Young."
    assert text.number_note == instead
    assert text.sure[:2] == [
        "How sure: higher on 3 of 3 seeds; few seeds, better --seeds 5.",
        "With uniform weights it would be 50.1 %: Agreement is higher on 3 of 3 seeds.",
    ]
    assert [badge.note for badge in text.badges] == [
        "7.1 points less average precision without it",
        "5.1 points more average precision without it",
    ]
    assert text.evidence[0].startswith("Agreement minus the main task alone: +19.90 ± ")


def test_differences_in_the_sheet_of_verdicts_are_those_of_the_measure(comparison):
    (found,) = verdicts(comparison)
    sheet = verdict_sheet(found)
    without = {row[0].text: row[4].text for row in sheet.rows}
    assert without["Young"].startswith("-7.07 ± ")
    assert without["Bald"].startswith("+5.10 ± ")
    assert any("average precision without the task minus average precision with it" in note for note in sheet.notes)


def test_the_best_row_is_that_of_the_highest_average_precision(comparison):
    assert best_line(make_rows(comparison)) == Line("joint", "agreement")


def test_the_figure_shows_the_measure_and_says_which_way_is_better(comparison):
    chart = result_chart(comparison)
    assert chart.x_title == "test average precision in %"
    assert "higher is better" in chart.alt
    assert max(chart.dots, key=lambda dot: dot.summary.mean).name == "All targets + Agreement (ours, recommended)"


def test_where_a_result_lacks_the_measure_all_are_compared_by_the_error():
    records = faces(PRECISIONS)
    del records[-1].records[-1]["test_average_precision"]
    (comparison,) = comparisons(records)
    assert comparison.measure().is_error()
    assert make_answer(comparison).advice is Advice.ALONE
    (chosen_otherwise,) = comparisons([replace_choice(one) for one in faces(PRECISIONS)])
    assert make_answer(chosen_otherwise).advice is Advice.ALONE


def replace_choice(recorded):
    return recorded._replace(run=replace(recorded.run, select="error"))


def test_labels_needed_are_those_for_an_average_precision():
    """Alone gains 10 points per doubling of the labels, from 20 at 30; uniform weights are one doubling ahead."""
    records = []
    for labels, precision in ((30, 20.0), (60, 30.0), (120, 40.0)):
        alone = [precision + shift for shift in (-1.0, 0.0, 1.0)]
        helped = [value + 10 for value in alone]
        records += faces({"alone": alone, "uniform": helped, "agreement": helped}, labels=labels)
    (topic,) = topics(comparisons(records))
    share = saving(topic, Line("joint", "agreement"), 60.0, topic.main_only_line())
    assert share.mean == pytest.approx(0.5)
    assert labels_sheet(topic, 60.0).title.startswith("Labels needed for an average precision of 40.00 %")
    sentences = saving_sentences(topic, 60.0)
    assert any("that the main task alone needs for an average precision of 40.00 %" in one for one in sentences)
    chart = labels_chart(topic)
    assert chart.title.startswith("Average precision over labels")
    assert chart.panels[0].series[0].y == [20.0, 30.0, 40.0]
    assert 30.0 <= chart.level <= 50.0


def test_a_measure_and_its_shortfall():
    precision = Measure("average_precision")
    assert precision.value(precision.shortfall(80.0)) == 80.0
    assert (precision.better(), precision.worse()) == ("higher", "lower")
    assert (Measure().better(), Measure().worse()) == ("lower", "higher")
