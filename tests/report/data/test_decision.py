"""Decisions against their intervals, Holm's procedure, and the seeds that are still needed."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arml.report.data.decision import MARGIN, MOST_SEEDS, Outcome, decide, further_seeds, holm
from arml.report.data.summary import Seeds

differences = st.lists(st.floats(-30, 30).map(lambda d: round(d, 3)), max_size=9)
families = st.lists(differences, max_size=6)


@settings(max_examples=80, deadline=None)
@given(families)
def test_no_decision_contradicts_its_interval(family):
    for values, found in zip(family, decide(family), strict=True):
        interval = found.difference
        if found.outcome is Outcome.LESS:
            assert interval.high < 0
        if found.outcome is Outcome.MORE:
            assert interval.low > 0
        if found.outcome is Outcome.SAME:
            assert -MARGIN < interval.low <= interval.high < MARGIN
        if len(values) < 2:
            assert found.outcome is Outcome.OPEN
            assert found.further is None


@settings(max_examples=40, deadline=None)
@given(families)
def test_a_decision_in_a_family_is_never_bolder_than_alone(family):
    for together, values in zip(decide(family), family, strict=True):
        (alone,) = decide([values])
        assert together.outcome in (alone.outcome, Outcome.OPEN, Outcome.SAME)
        assert (together.difference, together.less, together.more) == (alone.difference, alone.less, alone.more)


@settings(max_examples=40, deadline=None)
@given(differences)
def test_turned_around_it_says_the_same(values):
    (ours,), (theirs,) = decide([values]), decide([[-value for value in values]])
    assert ours.flip() == theirs


@pytest.mark.parametrize(
    ("ps", "rejected"),
    [
        ([], []),
        ([0.05], [True]),
        ([0.03, 0.03], [False, False]),
        ([0.025, 0.05], [True, True]),
        ([0.016, 0.9, 0.025], [True, False, True]),
        ([0.02, 0.04, 0.9], [False, False, False]),
    ],
)
def test_holm_by_hand(ps, rejected):
    assert holm(ps) == rejected


def test_five_of_five_is_lost_among_many():
    """t = -5 / sqrt(10 / 4 / 5) = -7.07, p = 0.0021: enough alone, not as one of 25."""
    strong, noise = [-7.0, -6.0, -5.0, -4.0, -3.0], [5.0, -5.0, 5.0, -5.0, 1.0]
    assert decide([strong])[0].outcome is Outcome.LESS
    assert decide([strong, *[noise] * 24])[0].outcome is Outcome.OPEN


@pytest.mark.parametrize(
    ("mean", "spread", "total"),
    [
        (1.0, 1.0, 10),  # as in textbooks: a paired effect of 1 needs 10 pairs
        (5.0, 10.0, 34),  # an effect of 0.5 needs 34
        (0.0, 1.0, 10),  # no effect: the margin of 1 point is established as fast
        (0.5, 0.5, 10),
    ],
)
def test_seeds_still_needed(mean, spread, total):
    assert further_seeds(mean, spread, n=3) == total - 3
    assert further_seeds(-mean, spread, n=3) == total - 3


def test_more_tests_need_more_seeds_and_hopeless_cases_have_no_number():
    assert further_seeds(1.0, 1.0, 3, m=8) > further_seeds(1.0, 1.0, 3, m=1)
    assert further_seeds(0.5, 50.0, 3) == math.inf
    assert further_seeds(0.5, 0.0, 3) == 1
    assert further_seeds(1.0, 3.4, 3) <= MOST_SEEDS


def test_equal_errors_on_a_few_rows_establish_nothing():
    """Five test rows: one row is 20 points. Three times the same error is chance, not equality within a point."""
    (found,) = decide([[0.0, 0.0, 0.0]], Seeds(resolution=20.0))
    assert found.outcome is Outcome.OPEN
    assert found.difference.half_width > 20, "the interval shows it, too"
    assert decide([[-20.0, -20.0, -20.0]], Seeds(resolution=20.0))[0].outcome is Outcome.OPEN
    assert decide([[0.0, 0.0, 0.0]], Seeds(resolution=0.05))[0].outcome is Outcome.SAME


def test_where_seeds_divide_the_same_rows_more_of_them_may_never_be_enough():
    values = [9.0, -6.0, 3.0, 0.0]
    (independent,), (overlapping,) = decide([values]), decide([values], Seeds(overlap=0.25))
    assert independent.further == math.inf or independent.further > 20
    assert not independent.needs_rows
    assert overlapping.needs_rows
    assert overlapping.flip().needs_rows
    (settled,) = decide([[-9.0, -9.1, -8.9]], Seeds(overlap=0.25))
    assert settled.outcome is Outcome.LESS
    assert not settled.needs_rows
