"""Which cases are measured, and what they are compared with."""

from dataclasses import dataclass

import pytest

from arml.bench.contenders import DUAL, FIXED, GRAPH, contenders
from arml.bench.costs import Case, compare_with_fixed, kind_costs, warm_up
from arml.bench.problems import FLASH
from arml.bench.timing import Plan, Timing


def nothing(done, total):
    del done, total


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # from TorchJD; irrelevant here
def test_what_does_not_work_with_flash_attention_is_found_by_trying():
    few = Plan(repeats=1)
    flash = kind_costs(FLASH, contenders(), [3], few, batch=2, tick=nothing)
    refused = {refusal.name: refusal.reason for refusal in flash.refusals}
    without_second_derivative = {
        GRAPH,
        "squared norm (authors' release)",
        "CosineSim",
        "OL_AUX",
        "Gated ARML",
        "Agreement (recommended)",
    }
    assert set(refused) == {*without_second_derivative, DUAL}
    assert "forward AD" in refused[DUAL]
    assert all("flash_attention" in refused[name] for name in without_second_derivative)
    assert {one.name for one in flash.timings} == {one.name for one in contenders()} - set(refused)
    assert all("Another engine" not in reason and "\n" not in reason for reason in refused.values())


@dataclass(frozen=True)
class Instant(Plan):
    """A plan whose steps return the time they would take."""

    def seconds_of(self, step):
        return step()


def test_contenders_that_grow_are_left_out_where_they_are_too_slow():
    rare = {Case("grows", k) for k in (2, 20, 39, 40)}
    steps = {Case(name, k): (lambda k=k: 0.1 * k) for k in (2, 20, 39, 40) for name in ("grows", "flat")}
    first, refused = warm_up(steps, rare, Instant(), nothing)
    assert set(refused) == {Case("grows", 40)}
    assert "up to K = 39" in refused[Case("grows", 40)]
    assert first[Case("grows", 39)] == pytest.approx(3.9)

    first, refused = warm_up(steps, rare, Instant(brief=True), nothing)
    # 0.2 s for 3 tasks lets 1.4 s be expected for 21, and 2.7 s for 40: more than a quick look has.
    assert set(refused) == {Case("grows", 20), Case("grows", 39), Case("grows", 40)}
    assert "about 1 s" in refused[Case("grows", 20)]
    assert "about 3 s" in refused[Case("grows", 39)]
    assert Case("flat", 39) in first


def test_cases_are_compared_with_fixed_weights_at_the_same_number_of_tasks():
    timings = {
        Case(FIXED, 2): Timing(2.0, 1.5, 2.5, 3),
        Case("x", 2): Timing(6.0, 5.0, 8.0, 3),
        Case(FIXED, 9): Timing(3.0, 3.0, 3.0, 3),
        Case("x", 9): Timing(6.0, 6.0, 6.0, 3),
    }
    costs = compare_with_fixed("net", timings, {Case(FIXED, 2): 100, Case("x", 2): 150, Case(FIXED, 9): 100})
    assert [(one.name, one.num_aux, one.ratio, one.extra_bytes) for one in costs] == [
        (FIXED, 2, 1.0, 0),
        ("x", 2, 3.0, 50),
        (FIXED, 9, 1.0, 0),
        ("x", 9, 2.0, None),
    ]
    assert costs[1].spread() == pytest.approx(0.75)  # half of 8 - 5, in units of 2
