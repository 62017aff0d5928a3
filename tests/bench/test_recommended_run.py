"""Steps of the recommended method: what they do, not how long it takes."""

import pytest
import torch

from arml.bench.problems import MLP, Problem
from arml.bench.recommended_run import (
    RUN_STEPS,
    SKIPPING,
    UPDATING,
    WAITING,
    recommended_steps,
    run_ratio,
    skipping_step,
    waiting_step,
)
from arml.bench.timing import Plan
from arml.bench.whole_run import count_operations, default_step
from arml.methods import Uniform
from arml.reweighter import Reweighter


def test_a_run_has_the_updates_that_a_reweighter_without_a_method_makes():
    ticks = []
    found = recommended_steps(MLP, 3, 4, Plan(repeats=2), lambda *tick: ticks.append(tick))
    problem = Problem(MLP, 1, batch=2)
    reweighter = Reweighter(tasks=problem.tasks, shared=problem.trunk, convergence=None)
    updates = 0
    for _ in range(RUN_STEPS):
        updates += reweighter.update_due
        reweighter(*problem.losses())
    assert [(one.name, one.in_run, one.n) for one in found] == [
        (UPDATING, updates, 2),
        (WAITING, RUN_STEPS - updates, 2),
        (SKIPPING, 0, 2),
    ]
    assert updates == 58
    assert ticks[-1] == (3, 3)
    assert all(one.low <= one.high for one in found)


def test_a_run_costs_the_mean_of_its_steps():
    found = recommended_steps(MLP, 2, 2, Plan(repeats=1), lambda *_: None)
    by_name = {one.name: one.ratio for one in found}
    assert run_ratio(found) == pytest.approx((58 * by_name[UPDATING] + 242 * by_name[WAITING]) / 300)


def test_steps_between_updates_measure_nothing():
    problem = Problem(MLP, 39, batch=8)
    fixed = count_operations(default_step(problem, Uniform()))
    assert count_operations(waiting_step(problem)) <= fixed + 2  # weights are not all 1, so they are multiplied


def test_tasks_that_have_faded_out_take_no_operations():
    few, many = (count_operations(skipping_step(Problem(MLP, k, batch=8))) for k in (2, 39))
    assert few == many < count_operations(default_step(Problem(MLP, 39, batch=8), Uniform())) / 2


def test_skipped_tasks_leave_the_step_of_the_main_task_alone():
    problem = Problem(MLP, 3, batch=8)
    step = skipping_step(problem)
    step()
    assert all(p.grad is None for head in problem.heads[1:] for p in head.parameters())
    assert all(p.grad is not None for p in problem.heads[0].parameters())
    found = [p.grad.clone() for p in problem.trunk.parameters()]
    with torch.no_grad():  # undo the step: v = momentum v + g, so the network before it is p + lr v
        for p in problem.trunk.parameters():
            p += 1e-4 * problem.optimizer.state[p]["momentum_buffer"]
        for p in problem.heads[0].parameters():
            p += 1e-4 * problem.optimizer.state[p]["momentum_buffer"]
    problem.optimizer.zero_grad()
    problem.losses()[0].backward()
    for p, g in zip(problem.trunk.parameters(), found, strict=True):
        torch.testing.assert_close(p.grad, g, rtol=1e-3, atol=1e-6)
