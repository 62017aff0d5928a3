"""The memory meter on known allocations, and whose turn it is."""

import itertools
from collections import Counter
from dataclasses import dataclass

import pytest
import torch

from arml.bench.contenders import FIXED
from arml.bench.costs import Case, rows_of, warm_up
from arml.bench.timing import Plan, Timing, peak_bytes, rounds_that_fit, time_all, tried, turns

MB = 1 << 20
FLOATS = MB // 4
"""Numbers of 4 bytes in a MB."""


def nothing(done, total):
    del done, total


def test_memory_that_lives_at_the_same_time_is_added_up():
    kept = []

    def two_of_which_one_stays():
        kept.append(torch.empty(FLOATS))
        other = torch.empty(FLOATS)
        del other
        torch.empty(FLOATS // 2)

    assert peak_bytes(two_of_which_one_stays) == 2 * MB


def test_memory_from_before_does_not_count():
    before = torch.ones(FLOATS)
    assert peak_bytes(lambda: before.sin_()) == 0
    assert peak_bytes(lambda: before.sin()) == MB


def test_memory_of_a_backward_pass_is_that_of_graph_and_gradient():
    x = torch.ones(FLOATS, requires_grad=True)

    def step():
        (x * x).sum().backward()

    # x * x is freed once it is summed up; then three of x's size live: two products of its rule, and their sum.
    assert 2 * MB <= peak_bytes(step) <= 3 * MB + 100
    assert x.grad is not None


def test_nothing_of_the_profiler_is_shown(capfd):
    peak_bytes(lambda: torch.ones(3))
    assert capfd.readouterr() == ("", "")


def test_all_cases_have_a_turn_in_every_round_and_rare_ones_in_every_third():
    due = turns(["a", "b", "slow", "slower"], 7, {"slow", "slower"})
    assert Counter(due) == {"a": 7, "b": 7, "slow": 3, "slower": 3}
    rest = iter(due)
    rounds = [tuple(itertools.islice(rest, 4 if number % 3 == 0 else 2)) for number in range(7)]
    assert all(
        sorted(one) == (["a", "b", "slow", "slower"] if i % 3 == 0 else ["a", "b"]) for i, one in enumerate(rounds)
    )
    assert len({one for one in rounds if len(one) == 4}) > 1  # not always in the same order
    assert turns(["a", "b", "slow", "slower"], 7, {"slow", "slower"}) == due


def test_as_many_rounds_as_fit_but_no_fewer_than_three():
    first = {"fast": 1.0, "slow": 6.0}
    assert rounds_that_fit(first, {"slow"}, Plan(repeats=15, seconds=30)) == 10  # a round takes 1 + 6 / 3
    assert rounds_that_fit(first, {"slow"}, Plan(repeats=5, seconds=30)) == 5
    assert rounds_that_fit(first, {"slow"}, Plan(repeats=15, seconds=1)) == 3
    assert rounds_that_fit(first, {"slow"}, Plan(repeats=1, seconds=1)) == 1


def test_every_turn_is_taken_and_counted():
    seen, counted = [], []
    steps = {name: (lambda name=name: seen.append(name)) for name in "ab"}
    timings, failed = time_all(steps, list("abab"), Plan(), lambda *count: counted.append(count))
    assert seen == list("abab")
    assert counted == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert {name: timing.n for name, timing in timings.items()} == {"a": 2, "b": 2}
    assert failed == {}


def test_a_way_that_fails_later_keeps_its_turns_and_has_no_more():
    tries = iter([None, RuntimeError("no more"), None])

    def sometimes():
        error = next(tries)
        if error is not None:
            raise error

    timings, failed = time_all({"x": sometimes}, ["x", "x", "x"], Plan(), nothing)
    assert timings["x"].n == 1
    assert failed == {"x": "no more"}
    assert next(tries, "left") is None  # the third turn was not taken


def test_another_way_that_takes_over_is_a_failure_and_other_warnings_are_not():
    import warnings

    taken_over = (
        "Inner products of task gradients: X does not work here and is not tried again (why). Another way is used"
    )
    assert tried(lambda: warnings.warn(taken_over, stacklevel=1), Plan())[1] == "why"
    with pytest.warns(UserWarning, match="slow"):
        assert tried(lambda: warnings.warn("slow", stacklevel=1), Plan())[1] == ""
    with pytest.raises(ZeroDivisionError):
        tried(lambda: 1 / 0, Plan())


@dataclass(frozen=True)
class Told(Plan):
    """A plan whose steps return what they take."""

    def seconds_of(self, step):
        return step()


def test_ways_that_grow_are_left_out_where_they_are_too_slow():
    rare = {Case("grows", k) for k in (2, 20, 39, 40)}
    steps = {Case(name, k): (lambda k=k: 0.1 * k) for k in (2, 20, 39, 40) for name in ("grows", "flat")}
    first, refused = warm_up(steps, rare, Told(), nothing)
    assert set(refused) == {Case("grows", 40)}
    assert "up to K = 39" in refused[Case("grows", 40)]
    assert first[Case("grows", 39)] == pytest.approx(3.9)

    first, refused = warm_up(steps, rare, Told(brief=True), nothing)
    # 0.2 s for 3 tasks lets 1.4 s be expected for 21, and 2.7 s for 40: more than a quick look has.
    assert set(refused) == {Case("grows", 20), Case("grows", 39), Case("grows", 40)}
    assert "about 1 s" in refused[Case("grows", 20)]
    assert "about 3 s" in refused[Case("grows", 39)]
    assert Case("flat", 39) in first


def test_rows_are_compared_with_fixed_weights_at_the_same_number_of_tasks():
    timings = {
        Case(FIXED, 2): Timing(2.0, 1.5, 2.5, 3),
        Case("x", 2): Timing(6.0, 5.0, 8.0, 3),
        Case(FIXED, 9): Timing(3.0, 3.0, 3.0, 3),
        Case("x", 9): Timing(6.0, 6.0, 6.0, 3),
    }
    rows = rows_of("net", timings, {Case(FIXED, 2): 100, Case("x", 2): 150, Case(FIXED, 9): 100})
    assert [(row.name, row.num_aux, row.ratio, row.extra_bytes) for row in rows] == [
        (FIXED, 2, 1.0, 0),
        ("x", 2, 3.0, 50),
        (FIXED, 9, 1.0, 0),
        ("x", 9, 2.0, None),
    ]
    assert rows[1].spread() == pytest.approx(0.75)  # half of 8 - 5, in units of 2
