"""Whole runs, and steps after convergence: what is done, not how long it takes."""

import pytest

from arml.bench.problems import MLP, Problem
from arml.bench.timing import Plan
from arml.bench.whole_run import (
    count_operations,
    count_updates,
    default_step,
    settled_cost,
    settled_step,
    take_turns,
    whole_runs,
)
from arml.methods import ARML, Uniform
from arml.reweighter import Reweighter
from arml.schedule import Growing

FEW = Plan(repeats=1)


def nothing(done, total):
    del done, total


def test_blocks_take_turns_and_the_first_of_each_does_not_count():
    seen, taken = [], iter(range(100))

    def seconds_of(step):
        step()
        return float(next(taken))

    steps = {"fixed": lambda: seen.append("f"), "learned": lambda: seen.append("l")}
    seconds = take_turns(steps, 3, 2, seconds_of, nothing)
    assert "".join(seen) == "fl" * 9
    assert seconds == {"fixed": [6.0 + 8 + 10, 12.0 + 14 + 16], "learned": [7.0 + 9 + 11, 13.0 + 15 + 17]}


def test_whole_runs_have_the_schedule_that_users_get():
    runs = whole_runs(MLP, 3, 8, FEW, 1, nothing)
    default = Reweighter(ARML(), ["a"], Problem(MLP, 1, batch=2).trunk).every
    assert default == Growing()
    assert [(run.closure, run.every, run.blocks) for run in runs] == [(False, default.most, 1), (True, default.most, 1)]
    assert all(run.low <= run.ratio <= run.high for run in runs)
    update = 1 + default.most * (runs[0].ratio - 1)  # one step in so many costs this, the others 1
    expected = 1 + count_updates(default, 5000) * (update - 1) / 5000
    assert runs[0].whole == pytest.approx(expected)
    assert runs[0].whole > runs[0].ratio > 1


def test_updates_are_counted_as_a_reweighter_makes_them():
    problem, schedule = Problem(MLP, 1, batch=2), Growing(most=4, rate=3)
    reweighter = Reweighter(ARML(lr=0.1), problem.tasks, problem.trunk, every=schedule, convergence=None)
    seen = []
    for _ in range(30):
        reweighter(*problem.losses())
        seen += [reweighter.signals] if not seen or reweighter.signals is not seen[-1] else []
    assert len(seen) == count_updates(schedule, 30)


def test_weights_that_have_settled_need_as_many_operations_as_fixed_ones():
    # Many tasks: of few, those of weight 1 are added without a product, and fixed weights are 1.
    found = settled_cost(MLP, 8, 8, FEW, 1)
    problem = Problem(MLP, 8, batch=8)
    assert found.operations == count_operations(settled_step(problem))
    assert found.operations == found.fixed_operations == count_operations(default_step(problem, Uniform()))
    assert found.operations < count_operations(default_step(problem, ARML())) / 1.5  # whose first step measures
