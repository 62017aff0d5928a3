"""Charts as plain data."""

import pytest

from arml.report.charts.chart import Heat, Lines


def test_every_figure_of_the_report_is_there(charts):
    kinds = {key.split("-")[0] for key in charts}
    assert kinds == {"error", "weights", "agreement", "labels", "scarcity", "matrix", "cost"}
    assert all(chart.alt.endswith(".") for chart in charts.values())


def test_weights_have_a_band_and_every_seed(charts):
    chart = charts["weights-digits-50-labels"]
    assert isinstance(chart, Lines)
    assert [panel.title for panel in chart.panels] == ["S4L + ARML", "S4L + Gated ARML (ours)"]
    rotation, exemplar = chart.panels[0].series
    assert (rotation.x, rotation.y[-1]) == ([25, 50], pytest.approx(0.06))
    assert rotation.low[-1] < 0.06 < rotation.high[-1]
    assert exemplar.name == "exemplar"
    assert dict(chart.panels[0].by_seed)["seed 2"][0].y[-1] == pytest.approx(0.07)
    # Equal weights do not change; their tasks' agreement does.
    assert [panel.title for panel in charts["agreement-digits-50-labels"].panels][-1] == "S4L, uniform weights"


def test_shots_are_shown_against_accuracy_and_labels_against_error(charts):
    shots, labels = charts["labels-digits-domains"], charts["labels-digits"]
    assert (shots.y_title, shots.log_x, shots.level) == ("accuracy in %", False, None)
    alone = next(series for series in shots.panels[0].series if series.name == "Main task only")
    assert (alone.x, alone.y) == ([1, 5], [70.5, 74.5])  # errors 29.5 and 25.5
    assert alone.low[0] < 70.5 < alone.high[0]
    assert (labels.y_title, labels.log_x) == ("test error in %", True)
    # The main task alone reaches 20.5 to 15.5, equal weights 18.5 to 13.5.
    assert labels.level == pytest.approx((18.5 + 15.5) / 2)


def test_scarcity_has_a_panel_for_few_and_for_many(charts):
    chart = charts["scarcity-digits-domains-joint-training-jt-arml"]
    assert [panel.title for panel in chart.panels] == ["1 shot per class", "5 shots per class"]


def test_the_matrix_has_a_gap_where_main_and_auxiliary_are_the_same(charts):
    chart = charts["matrix-yeast-50-labels-all-targets-arml"]
    assert isinstance(chart, Heat)
    assert chart.values[0][chart.columns.index("Class1")] is None
    assert chart.values[0][chart.columns.index("Class2")] == pytest.approx(2.005)


def test_the_curve_over_shots_says_that_all_are_left_out(spread, charts):
    chart = spread["labels-digits-domains"]
    assert chart.panels[0].series[0].x == [1, 5]
    assert chart.panels[0].title == "digits domains, runs with all labels left out"
    assert " Runs with all labels have no place on this axis; they are in the tables. " in chart.alt
    assert chart.alt.endswith("tested only on held-out images of the target, not on its training images.")
    assert "all labels" not in charts["labels-digits-domains"].alt
