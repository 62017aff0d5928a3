"""Answers about a table of one's own: simple models, auxiliary columns as inputs, and errors of numbers."""

import pytest
from report.made_records import make_recorded

from arml.lab.run_kinds import MultiLabel
from arml.report.data.answer import make_answer
from arml.report.data.comparison import comparisons
from arml.report.tables.answer_text import MOST_LINES, answer_text

NETWORK = [30.0, 31.0, 29.0, 30.5, 29.5]
WILD = [28.0, 34.0, 25.0, 33.0, 27.0]


def sentences(*, numeric=False, tested=1000, names=("age", "ward"), **errors):
    """The answer on a table, with the errors of each line, seed by seed; ``tested`` rows are in a test part."""
    records = []
    for name, values in errors.items():
        learner, method = ("joint", name) if name in ("uniform", "agreement") else (name, "uniform")
        for seed, error in enumerate(values):
            run = MultiLabel(
                dataset="table", table="t.csv", main="ill", aux=names, learner=learner, method=method, seed=seed
            )
            one = make_recorded(error, run=run, weights=dict.fromkeys(names, 1.0) if learner == "joint" else {})
            one.records[-1] |= {"test_majority_error": 100 / tested, **({"test_rmse": 1.0} if numeric else {})}
            records.append(one)
    (comparison,) = comparisons(records)
    text = answer_text(make_answer(comparison))
    assert len(text.lines()) <= MOST_LINES
    return text


def test_columns_that_are_known_at_prediction_are_best_used_as_inputs():
    text = sentences(main_only=WILD, uniform=NETWORK, agreement=NETWORK, aux_inputs=[e - 20 for e in NETWORK])
    assert (
        "If the auxiliary columns are known when you predict, use them as inputs: 10.0 % with a regression, lower than "
        "Agreement on 5 of 5 seeds." in text.sure
    )
    assert not text.headline.startswith("Use"), "nobody knows whether they are known"


def test_what_is_not_established_is_said_as_a_try():
    lower = [12.0, 29.0, 24.0, 31.0, 20.0]
    text = sentences(main_only=WILD, uniform=NETWORK, agreement=NETWORK, aux_inputs=lower, forest=lower)
    assert "A simpler model may do: a random forest, 23.2 %, lower on 4 of 5 seeds; not established." in text.sure
    assert (
        "If the auxiliary columns are known when you predict, try them as inputs: 23.2 % with a regression, lower than "
        "Agreement on 4 of 5 seeds; not established." in text.sure
    )


def test_a_simpler_model_that_is_lower_on_few_seeds_is_not_named():
    """One seed far below brings the mean below, too."""
    text = sentences(main_only=WILD, uniform=NETWORK, agreement=NETWORK, forest=[2.0, 32.0, 31.5, 33.0, 31.0])
    assert not any("simpler model" in line for line in text.sure)


def test_a_simpler_model_that_does_as_well_is_named():
    near = [30.2, 30.8, 29.2, 30.3, 29.5]
    text = sentences(main_only=WILD, uniform=NETWORK, agreement=NETWORK, linear=near)
    assert (
        "A simpler model does as well as Agreement, within 1 point: logistic or ridge regression, 30.0 %." in text.sure
    )


@pytest.mark.parametrize("numeric", [True, False])
def test_the_error_of_a_number_is_explained(numeric):
    text = sentences(main_only=WILD, uniform=NETWORK, agreement=NETWORK, numeric=numeric)
    assert any("share of its variance that is not explained" in line for line in text.sure) == numeric


def test_seeds_that_divide_the_same_rows_cannot_settle_everything():
    text = sentences(main_only=WILD, uniform=NETWORK, agreement=NETWORK)
    assert text.headline == (
        "Cannot tell yet whether Agreement beats the main task alone: more labelled rows would tell, more seeds of "
        "these rows would not."
    )
    assert "corrected for their overlap" in text.evidence[-1], "the formula is that of the intervals"


@pytest.mark.parametrize(("tested", "same"), [(5, False), (5000, True)])
def test_equal_errors_on_a_few_rows_are_no_equality(tested, same):
    errors = [20.0, 0.0, 20.0]
    text = sentences(main_only=errors, uniform=errors, agreement=errors, tested=tested)
    assert text.headline.startswith("Keep it simple") == same
    assert text.headline.startswith("Cannot tell yet") != same


def test_names_with_commas_stay_together():
    text = sentences(names=("height, cm", "age"), main_only=WILD, uniform=NETWORK, agreement=NETWORK)
    assert "'height, cm', age (not tried without: arml compare mlc --without 'height, cm' age)" in text.lines()[-1]
