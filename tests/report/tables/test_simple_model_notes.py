"""The line about simpler models."""

from arml.lab.run import Line
from arml.report.data.summary import Summary
from arml.report.tables.rows import Row
from arml.report.tables.simple_model_notes import simple_model_notes


def row(learner, mean, half_width=1.0, method=""):
    error = {"error": Summary(mean, half_width, 5)}
    return Row(Line(learner, method), error, None, "error", None, {}, 0, 0, 0, 0, (), "", {})


NETWORK = row("joint", 20.0, method="agreement")


def test_a_simpler_model_that_wins_is_named():
    (line,) = simple_model_notes([NETWORK, row("linear", 10.0), row("forest", 15.0)])
    assert line.startswith("A simpler model is better here: Logistic or ridge regression, main labels alone 10.0 ±")


def test_overlapping_intervals_establish_nothing():
    (line,) = simple_model_notes([NETWORK, row("linear", 19.0)])
    assert line.startswith("A simpler model may do here")
    assert line.endswith("Their intervals overlap.")


def test_auxiliary_columns_as_inputs_come_with_their_condition():
    first, second = simple_model_notes([NETWORK, row("linear", 30.0), row("aux_inputs", 5.0)])
    assert first.startswith("The best simple model: Logistic")
    assert second.startswith("If the auxiliary columns are known at prediction time, use them as inputs")


def test_without_simple_lines_there_is_nothing_to_say():
    assert simple_model_notes([NETWORK]) == []
    assert simple_model_notes([row("linear", 5.0)]) == []
