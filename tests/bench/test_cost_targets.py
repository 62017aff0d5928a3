"""Targets judged by results made up by hand."""

from dataclasses import replace

import pytest
from bench.made_results import MILLION, cost, made_result, made_steps, with_cost

from arml.bench.contenders import DUAL, FIXED, GRAPH
from arml.bench.cost_targets import judge_targets
from arml.bench.result import Result, SettledCost


def judged(result):
    return {target.name: target for target in judge_targets(result)}


def missed(result):
    return [target for target in judge_targets(result) if target.met is False]


def test_all_targets_are_met():
    found = judge_targets(made_result())
    assert [target.outcome() for target in found] == ["met"] * 15
    by_name = judged(made_result())
    assert by_name["ResNet18, K = 39: a step that updates, double_backward"].measured == 3.0
    assert by_name["ResNet18, K = 39: a step that updates, double_backward"].details == "600 ms against 200 ms"
    memory = by_name["ResNet18, K = 2 to 200: growth of extra memory, DualNumbers"]
    assert (memory.measured, memory.details) == (1.0, "0.50 P to 0.50 P, P the shared parameters' 4.0 MB")


def test_an_update_that_takes_too_long_says_where_its_time_goes():
    (target,) = missed(with_cost(made_result(), cost(GRAPH, 39, 5.0)))
    assert (target.measured, target.limit) == (5.0, 4.5)
    assert target.reason == "of its time: second backward 75%; forward 25%"
    (target,) = missed(with_cost(made_result(), cost(DUAL, 39, 3.1)))
    assert target.reason == "its parts were not timed (part `phases`)"


def test_growth_is_that_of_the_ratio():
    (target,) = missed(with_cost(made_result(), cost(GRAPH, 200, 3.9)))
    assert target.measured == pytest.approx(1.3)
    assert target.details == "3.00 to 3.90; seconds grow 1.30 times"
    # Fixed weights take twice as long with 200 tasks, and so may the update.
    slower = with_cost(made_result(), cost(FIXED, 200, 1.0, fixed=0.4))
    assert not missed(with_cost(slower, cost(GRAPH, 200, 3.0, fixed=0.4)))


def test_memory_must_not_grow_with_tasks():
    (target,) = missed(with_cost(made_result(), cost(GRAPH, 200, 3.0, extra=3 * MILLION)))
    assert target.measured == 1.5
    assert target.reason == "1.0 MB more for 198 more tasks"
    nothing_extra = with_cost(made_result(), cost(GRAPH, 2, 3.0, extra=0))
    assert len(missed(nothing_extra)) == 1
    assert not missed(with_cost(nothing_extra, cost(GRAPH, 200, 3.0, extra=0)))


def test_a_whole_run_that_costs_too_much_says_how_often_updates_may_be():
    result = made_result()
    often = tuple(replace(run, every=10, ratio=1.2, whole=1.21) for run in result.schedule[:1])
    (target,) = missed(replace(result, schedule=(*often, *result.schedule[1:])))
    assert target.reason == "one of 10 steps takes 3.0: 1 + 2.0 / 10 = 1.200; an update every 20 steps would do"


def test_one_operation_too_many_after_convergence_is_too_many():
    (target,) = missed(replace(made_result(), settled=(SettledCost("net", 39, 901, 900, 930, 1.0, 1.0, 1.0),)))
    assert target.reason == "1 operations too many"


def test_a_run_of_the_recommended_method_costs_the_mean_of_its_steps():
    run = judge_targets(made_result())[-1]
    assert run.measured == pytest.approx(0.1 * 2.2 + 0.9 * 0.95)
    assert run.details == "30 steps of 2.200, updates the weights; 270 steps of 0.950, between two updates"
    (target,) = missed(replace(made_result(), recommended=made_steps(2.9)))
    assert (target.measured, target.limit) == (pytest.approx(1.145), 1.1)
    assert target.reason == "an update would have to take 2.45"
    update, run = missed(replace(made_result(), recommended=made_steps(3.1)))
    assert (update.measured, update.limit) == (3.1, 3.0)
    assert update.details == "half of 15 pairs of steps between 3.00 and 3.20"


def test_a_loop_that_skips_tasks_must_be_faster_than_fixed_weights():
    *steps, skipping = made_steps(2.2)
    (target,) = missed(replace(made_result(), recommended=(*steps, replace(skipping, ratio=1.01))))
    assert (target.measured, target.limit) == (1.01, 1.0)
    assert target.name == "ResNet18, K = 39: recommended method, a step: all tasks faded out and skipped"


def test_what_was_not_measured_is_neither_met_nor_missed():
    found = judge_targets(Result({}, {}))
    assert len(found) == 15
    assert all(target.met is None and target.outcome() == "not measured" for target in found)
