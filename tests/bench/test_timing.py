"""The memory meter on known allocations, and whose turn it is."""

import itertools
import warnings
from collections import Counter

import pytest
import torch

from arml import EngineFallbackWarning
from arml.bench.timing import Plan, peak_bytes, rounds_that_fit, time_all, try_step, turns

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
    seen, ticks = [], []
    steps = {name: (lambda name=name: seen.append(name)) for name in "ab"}
    timings, failed = time_all(steps, list("abab"), Plan(), lambda *tick: ticks.append(tick))
    assert seen == list("abab")
    assert ticks == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert {name: timing.n for name, timing in timings.items()} == {"a": 2, "b": 2}
    assert failed == {}


def test_a_case_that_fails_later_keeps_its_turns_and_has_no_more():
    tries = iter([None, RuntimeError("no more"), None])

    def sometimes():
        error = next(tries)
        if error is not None:
            raise error

    timings, failed = time_all({"x": sometimes}, ["x", "x", "x"], Plan(), nothing)
    assert timings["x"].n == 1
    assert failed == {"x": "no more"}
    assert next(tries, "left") is None  # the third turn was not taken


def test_a_fallback_to_another_engine_is_a_failure_and_other_warnings_are_not():
    fallback = EngineFallbackWarning("X", "no\n derivative")
    assert try_step(lambda: warnings.warn(fallback, stacklevel=1), Plan()) == (0.0, "no derivative")
    with pytest.warns(UserWarning, match="slow"):
        assert try_step(lambda: warnings.warn("slow", stacklevel=1), Plan())[1] == ""
    with pytest.raises(UserWarning, match="slow"):  # tests make warnings errors, and a user may do so, too
        try_step(lambda: warnings.warn("slow", stacklevel=1), Plan())
    with pytest.raises(ZeroDivisionError):
        try_step(lambda: 1 / 0, Plan())


def test_reasons_are_short():
    def fail():
        raise RuntimeError("word " * 1000)

    assert len(try_step(fail, Plan())[1]) == 300
