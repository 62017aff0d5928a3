"""The answer in words: golden sentences, and no sentence that its interval contradicts."""

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report.made_answers import TASKS, answer_at, answer_on, make_records

from arml.report.data.decision import MARGIN
from arml.report.data.summary import paired_difference
from arml.report.data.verdict import Finding
from arml.report.tables.answer_text import MOST_LINES, answer_text

HIGH = [25.0, 26.0, 24.0, 25.5, 24.5]
MIDDLE = [18.0, 18.5, 17.0, 18.2, 17.8]
LOW = [12.0, 12.5, 11.5, 12.0, 12.2]


def test_the_whole_answer():
    found = answer_on(
        alone=HIGH,
        uniform=MIDDLE,
        agreement=LOW,
        without_misleading=[error - 4.0 - 0.1 * seed for seed, error in enumerate(MIDDLE)],
        without_mnist5k=[error + 6.0 + 0.1 * seed for seed, error in enumerate(MIDDLE)],
    )
    assert answer_text(found).lines() == [
        "20 digits labels, two other sources",
        "Train with Agreement: 12.0 % error instead of 25.0 % on the main task alone; drop misleading; keep mnist5k.",
        "How sure: lower on 5 of 5 seeds.",
        "With uniform weights it would be 17.9 %: Agreement is lower on 5 of 5 seeds.",
        "helps: mnist5k (6.2 points more error without it)",
        "drop it: misleading (4.2 points less error without it)",
    ]
    assert answer_text(found).number == "12.0 %"
    assert answer_text(found).number_note == "error instead of 25.0 % on the main task alone"
    assert answer_text(found).evidence[0].startswith("Agreement minus the main task alone: -12.96 ± ")


def test_an_answer_has_at_most_ten_lines_on_a_narrow_terminal_too():
    """What gives way first is what is said last of how sure it is."""
    text = answer_text(answer_on(alone=HIGH, uniform=MIDDLE, agreement=LOW))
    text = text._replace(sure=[*text.sure, *("x" * 30 + " " + "y" * 30 for _ in range(5))])
    found = text.lines(40)
    assert sum(len(textwrap.wrap(line, 40)) for line in found) <= MOST_LINES
    assert found[:3] == text.lines()[:3]
    assert found[-1] == text.lines()[-1], "verdicts stay"
    assert len(text.lines(400)) > len(found)


@pytest.mark.parametrize(
    ("errors", "headline"),
    [
        (
            {"alone": LOW, "uniform": HIGH, "agreement": MIDDLE},
            "Train on the main task alone: 12.0 % error, and the auxiliary tasks cost more than they give.",
        ),
        (
            {"alone": LOW, "uniform": HIGH, "agreement": LOW},
            "Keep it simple, take the main task alone: Agreement makes no difference of more than 1 point.",
        ),
        (
            {"alone": [20.0, 24.0, 22.0], "uniform": [30.0, 36.0, 29.0], "agreement": [16.0, 24.0, 18.0]},
            "Cannot tell yet whether Agreement beats the main task alone: about 8 more seeds are expected to settle "
            "it: --seeds 11.",
        ),
        ({"alone": [9.0], "uniform": [8.0], "agreement": [1.0]}, "One seed says nothing: add --seeds 5."),
        (
            {"uniform": MIDDLE, "agreement": LOW},
            "Train with Agreement: 12.0 % error instead of 17.9 % with uniform weights.",
        ),
        (
            {"agreement": LOW},
            "Nothing to compare yet: no other line than Agreement has finished; `arml compare` trains what it is "
            "compared with.",
        ),
    ],
)
def test_headlines(errors, headline):
    assert answer_text(answer_on(**errors)).headline == headline


def test_a_simpler_model_wins():
    simple = {"logistic_regression": [error - 5 for error in LOW], "most_frequent_class": [12.0] * 5}
    text = answer_text(answer_on(alone=HIGH, uniform=MIDDLE, agreement=LOW, simple=simple))
    assert text.headline == (
        "Use logistic regression on the same labels: its error is 5.0 points lower than that of Agreement (12.0 %)."
    )
    assert text.number == "7.0 %"
    assert "How sure: lower on 5 of 5 seeds. A simpler model wins here." in text.sure
    assert any(line.startswith("Caution: always the most frequent class has an error of 12.0 %") for line in text.sure)


def test_labels_that_are_saved_are_mentioned_only_if_they_are_established():
    records = []
    for shots, alone in ((1, 40.0), (2, 30.0), (4, 20.0), (8, 10.0)):
        by_seed = [alone + shift for shift in (-0.4, 0.0, 0.4)]
        records += make_records(shots=shots, alone=by_seed, uniform=by_seed, agreement=[e - 10 for e in by_seed])
    assert (
        "Without the auxiliary tasks about 2.0 times as many labels would be needed."
        in answer_text(answer_at(2, records)).sure
    )
    assert "times as many" not in " ".join(answer_text(answer_at(8, records)).sure)


def test_a_task_that_was_never_left_out_comes_with_the_command_that_would_tell():
    text = answer_text(answer_on(alone=HIGH, uniform=MIDDLE, agreement=LOW))
    notes = {one.task: one.note for one in text.badges}
    assert notes["misleading"] == "not tried without it: arml compare dg --without misleading"
    assert text.lines()[-1] == (
        "cannot tell yet: mnist5k, misleading (not tried without: arml compare dg --without mnist5k misleading)"
    )


errors = st.lists(st.floats(0, 60).map(lambda error: round(error, 2)), min_size=4, max_size=4)
near = st.lists(st.floats(-0.5, 0.5).map(lambda shift: round(shift, 2)), min_size=4, max_size=4)
shifts = st.sampled_from([-20.0, -3.0, 0.0, 3.0, 20.0])


@st.composite
def experiments(draw):
    """Errors of all lines: either unrelated, or a common part with a shift and a little noise."""
    base = draw(errors)
    names = ["alone", "uniform", "arml", "agreement", *(f"without_{task}" for task in TASKS)]
    kept = [name for name in names if name == "agreement" or draw(st.integers(0, 4))]
    found = {}
    for name in kept:
        noisy = [error + noise for error, noise in zip(base, draw(near), strict=True)]
        shift = draw(shifts)
        found[name] = draw(errors) if not draw(st.integers(0, 3)) else [error + shift for error in noisy]
    return {name: values[: draw(st.integers(1, 4))] for name, values in found.items()}


@settings(max_examples=80, deadline=None)
@given(experiments())
def test_no_statement_contradicts_its_interval(experiment):
    found = answer_on(**experiment)
    text = answer_text(found)
    assert len(text.lines()) <= MOST_LINES
    errors = {name: dict(enumerate(values)) for name, values in experiment.items()}

    def interval(ours, theirs):
        return paired_difference(errors[ours], errors[theirs])

    name = {"jt": found.line.method, "main_only": "alone"}[found.line.learner]
    rival = "alone" if "alone" in errors else "uniform"
    if text.headline.startswith("Train with"):
        assert interval(name, rival).high < 0
    if text.headline.startswith("Train on the main task alone"):
        assert any(interval("alone", other).high < 0 for other in errors if other != "alone")
    if text.headline.startswith("Keep it simple"):
        assert -MARGIN < interval(name, rival).low <= interval(name, rival).high < MARGIN
    for sentence in text.sure:
        if "do as well" in sentence:
            assert -MARGIN < interval(name, "uniform").low <= interval(name, "uniform").high < MARGIN
        if "is lower on" in sentence:
            assert interval(name, "uniform").high < 0
        if "is higher on" in sentence:
            assert interval(name, "uniform").low > 0
    for badge in text.badges:
        left_out = f"without_{badge.task}"
        if badge.finding is Finding.OPEN:
            continue
        without = interval(left_out, "uniform")
        if badge.finding is Finding.HELPS:
            assert without.low > 0
        if badge.finding is Finding.DROP:
            assert without.high < 0
        if badge.finding is Finding.SAME:
            assert -MARGIN < without.low <= without.high < MARGIN
