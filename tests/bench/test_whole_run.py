"""Whole runs, steps after convergence, the parts of a step, and other sizes: what is done, not how long it takes."""

import inspect

import pytest

from arml.bench import scaling
from arml.bench.contenders import DUAL, FIXED, GRAPH
from arml.bench.problems import MLP, Problem
from arml.bench.step_profile import (
    AGAIN,
    BACKWARD,
    BESIDES,
    DIRECTION,
    FORWARD,
    KEPT,
    MOST_OPERATIONS,
    OPTIMISER,
    SECOND,
    operations_of,
    phases_of,
)
from arml.bench.timing import Plan
from arml.bench.whole_run import (
    after_convergence,
    operations,
    settled_step,
    step_with,
    take_turns,
    updates_within,
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
    default = inspect.signature(Reweighter).parameters["every"].default
    assert default == Growing()
    assert [(run.closure, run.every, run.blocks) for run in runs] == [(False, default.most, 1), (True, default.most, 1)]
    assert all(run.low <= run.ratio <= run.high for run in runs)
    update = 1 + default.most * (runs[0].ratio - 1)  # one step in so many costs this, the others 1
    expected = 1 + updates_within(default, 5000) * (update - 1) / 5000
    assert runs[0].whole == pytest.approx(expected)
    assert runs[0].whole > runs[0].ratio > 1


def test_updates_are_counted_as_a_reweighter_makes_them():
    problem, schedule = Problem(MLP, 1, batch=2), Growing(most=4, rate=3)
    reweighter = Reweighter(ARML(lr=0.1), problem.tasks, problem.trunk, every=schedule, convergence=None)
    seen = []
    for _ in range(30):
        reweighter(*problem.losses())
        seen += [reweighter.signals] if not seen or reweighter.signals is not seen[-1] else []
    assert len(seen) == updates_within(schedule, 30)


def test_weights_that_have_settled_need_as_many_operations_as_fixed_ones():
    found = after_convergence(MLP, 5, 8, FEW, 1)
    problem = Problem(MLP, 5, batch=8)
    assert found.operations == operations(settled_step(problem))
    assert found.operations == found.fixed_operations == operations(step_with(problem, Uniform()))
    assert found.operations < operations(step_with(problem, ARML())) / 1.5  # whose first step measures


@pytest.mark.parametrize("closure", [False, True])
def test_the_parts_of_a_step_are_told_apart(closure):
    parts = [one for one in phases_of(MLP, 3, 8, FEW, 1) if one.closure == closure]
    passes = [FORWARD, DIRECTION, AGAIN] if closure else [FORWARD, KEPT, SECOND]
    assert [one.name for one in parts] == [*passes, BESIDES, BACKWARD, OPTIMISER]
    assert sum(one.share for one in parts) == pytest.approx(1)
    assert all(one.ms >= 0 for one in parts)


def test_the_most_expensive_operations_have_names_and_calls(capfd):
    found = operations_of(MLP, 3, 8, FEW)
    assert [sum(one.closure == closure for one in found) for closure in (False, True)] == [MOST_OPERATIONS] * 2
    assert any(one.name == "aten::addmm" and one.calls >= 3 for one in found)
    own = [one.ms for one in found if not one.closure]
    assert own == sorted(own, reverse=True)
    assert capfd.readouterr() == ("", "")


def test_other_sizes_are_measured_with_and_without_updates(monkeypatch):
    monkeypatch.setattr(scaling, "BATCHES", (2, 4))
    monkeypatch.setattr(scaling, "WIDTHS", (8, 16))
    batches = scaling.over_batches(MLP, 3, FEW, nothing)
    assert [(one.value, one.name) for one in batches] == [(b, name) for b in (2, 4) for name in (FIXED, GRAPH, DUAL)]
    assert all(one.ratio == 1 and one.extra_bytes == 0 for one in batches if one.name == FIXED)
    parameters = scaling.over_parameters(3, FEW, nothing)
    # 100 inputs, three layers of 8 or 16: 100 w + w, and twice w w + w.
    assert list(dict.fromkeys(one.value for one in parameters)) == [808 + 2 * 72, 1616 + 2 * 272]
