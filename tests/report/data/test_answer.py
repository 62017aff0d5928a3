"""What the answer recommends, and that it recommends nothing that is not established."""

import pytest
from report.made_answers import answer_at, answer_on, make_records

from arml.lab.run import Line
from arml.report.data.answer import Advice
from arml.report.data.decision import Outcome

HIGH = [25.0, 26.0, 24.0, 25.5, 24.5]
MIDDLE = [18.0, 18.5, 17.0, 18.2, 17.8]
LOW = [12.0, 12.5, 11.5, 12.0, 12.2]
WILD = [12.0, 32.0, 20.0, 36.0, 14.0]
AGREEMENT, UNIFORM, ALONE = Line("jt", "agreement"), Line("jt", "uniform"), Line("main_only")


@pytest.mark.parametrize(
    ("alone", "uniform", "agreement", "advice", "line"),
    [
        (HIGH, MIDDLE, LOW, Advice.LINE, AGREEMENT),
        (HIGH, LOW, MIDDLE, Advice.LINE, UNIFORM),
        (HIGH, LOW, LOW, Advice.LINE, AGREEMENT),  # weights make no difference, tasks do
        (LOW, MIDDLE, HIGH, Advice.ALONE, ALONE),
        (LOW, HIGH, MIDDLE, Advice.ALONE, ALONE),
        (LOW, HIGH, LOW, Advice.EITHER, AGREEMENT),
        (MIDDLE, HIGH, WILD, Advice.OPEN, AGREEMENT),
        (HIGH, MIDDLE, WILD, Advice.LINE, UNIFORM),
        (HIGH[:1], MIDDLE[:1], LOW[:1], Advice.ONE_SEED, AGREEMENT),
    ],
)
def test_advice(alone, uniform, agreement, advice, line):
    found = answer_on(alone=alone, uniform=uniform, agreement=agreement)
    assert (found.advice, found.line) == (advice, line)


def test_what_was_not_run_is_not_compared():
    found = answer_on(uniform=MIDDLE, agreement=LOW)
    assert (found.advice, found.line, found.against_alone) == (Advice.LINE, AGREEMENT, None)
    assert answer_on(agreement=LOW).advice is Advice.NOTHING
    assert answer_on(alone=HIGH, uniform=LOW).line == UNIFORM
    assert answer_on(uniform=LOW).advice is Advice.NOTHING


def test_the_recommended_method_is_judged_first_and_another_needs_to_beat_it():
    luckier = [error - 0.1 * (seed % 2) for seed, error in enumerate(LOW)]
    found = answer_on(alone=HIGH, uniform=MIDDLE, arml=luckier, agreement=LOW)
    assert found.line == AGREEMENT
    assert found.chosen_among == 1
    better = [error - 4.0 - 0.1 * seed for seed, error in enumerate(LOW)]
    found = answer_on(alone=HIGH, uniform=MIDDLE, arml=better, gradnorm=HIGH, agreement=LOW)
    assert found.line == Line("jt", "arml")
    assert found.chosen_among == 3  # it, GradNorm, and the line it replaced
    assert found.against_alone.outcome is Outcome.LESS


def test_of_two_learners_each_is_compared_with_its_own_uniform_weights():
    other = {"baseline__uniform": HIGH, "baseline__arml": HIGH}
    found = answer_on(alone=[error + 5 for error in HIGH], **other, uniform=LOW, arml=MIDDLE)
    assert (found.line, found.uniform) == (UNIFORM, UNIFORM)
    assert found.against_uniform is None
    found = answer_on(
        alone=[error + 5 for error in HIGH], uniform=HIGH, arml=HIGH, fada__uniform=MIDDLE, fada__arml=LOW
    )
    assert (found.line, found.uniform) == (Line("fada", "arml"), Line("fada", "uniform"))
    assert found.against_uniform.difference.mean == pytest.approx(-5.86)


def test_joint_training_is_judged_before_learners_with_as_many_lines():
    found = answer_on(alone=HIGH, baseline__uniform=LOW, baseline__agreement=LOW, uniform=MIDDLE, agreement=MIDDLE)
    assert found.judged == AGREEMENT


def test_lines_that_leave_a_task_out_are_never_recommended():
    found = answer_on(alone=HIGH, uniform=MIDDLE, agreement=LOW, without_misleading=[1.0, 1.1, 0.9, 1.0, 1.0])
    assert found.line == AGREEMENT


def test_a_simpler_model_that_wins_is_the_answer_and_a_constant_one_is_a_caution():
    errors = {"alone": HIGH, "uniform": MIDDLE, "agreement": LOW}
    good = [error - 5 for error in LOW]
    found = answer_on(**errors, simple={"logistic_regression": good, "most_frequent_class": [11.0] * 5})
    assert found.advice is Advice.SIMPLE
    assert found.simple[0] == "logistic_regression"
    assert found.constant == ("most_frequent_class", 11.0)
    found = answer_on(**errors, simple={"logistic_regression": HIGH, "most_frequent_class": [90.0] * 5})
    assert (found.advice, found.constant) == (Advice.LINE, None)
    assert found.simple[1].outcome is Outcome.MORE


def test_how_many_times_as_many_labels_the_main_task_alone_needs():
    """Alone falls by 10 points per doubling, from 40; with all tasks 2 shots give 20, for which alone needs 4."""
    records = []
    for shots, alone in ((1, 40.0), (2, 30.0), (4, 20.0), (8, 10.0)):
        by_seed = [alone + shift for shift in (-0.4, 0.0, 0.4)]
        helped = [error - 10.0 for error in by_seed]
        records += make_records(shots=shots, alone=by_seed, uniform=by_seed, agreement=helped)
    factor, at_least = answer_at(2, records).labels_factor
    assert factor.mean == pytest.approx(2.0)
    assert not at_least
    factor, at_least = answer_at(8, records).labels_factor  # alone would need 16, and 8 are the most that were tried
    assert (factor.mean, at_least) == (1.0, True)
