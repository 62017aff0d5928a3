"""Batches that hold some of the tasks teach as much as batches that hold all of them."""

import copy
import io

import pytest
import torch
from core.test_planted import Planted, Signposts
from core.test_planted import train as train_all_at_once
from core.test_reweighter import TASKS, Net
from torch import nn
from torch.testing import assert_close
from torchjd.aggregation import UPGradWeighting

from arml import (
    ARML,
    OLAUX,
    TAWT,
    AutoLambda,
    AuxiNash,
    Convergence,
    CosineSim,
    DoGE,
    GatedARML,
    GradNorm,
    Growing,
    MetaBalance,
    Reweighter,
    TorchJD,
    WeightedCosineSim,
)
from arml.gradients.sketch import SIZE, sketch
from arml.rounds import LONGEST

METHODS = [
    ARML(lr=0.02),
    ARML(lr=0.02, scale_free=True),
    GatedARML(ARML(lr=0.02), warmup=3),
    GradNorm(lr=0.01),
    OLAUX(lr=0.02),
    OLAUX(lr=0.02, horizon=2),
    CosineSim(),
    WeightedCosineSim(),
    TAWT(),
    MetaBalance(),
    AutoLambda(),
    AuxiNash(),
    DoGE(),
    TorchJD(UPGradWeighting()),
]
every_method = pytest.mark.parametrize("method", METHODS, ids=repr)


class Slopes(nn.Module):
    """Losses with constant gradients: it does not matter in which step a task is measured."""

    def __init__(self, num_tasks, num_parameters=12):
        super().__init__()
        self.theta = nn.Parameter(torch.zeros(num_parameters, dtype=torch.float64))
        generator = torch.Generator().manual_seed(num_tasks)
        gradients = torch.randn(1 + num_tasks, num_parameters, generator=generator, dtype=torch.float64)
        gradients[1:] += torch.linspace(1, -1, num_tasks, dtype=torch.float64)[:, None] * gradients[0]
        self.gradients = gradients / gradients[0].norm()
        self.tasks = [str(i) for i in range(num_tasks)]

    def losses(self, tasks=None, *, main=True):
        values = self.gradients @ self.theta + 1
        aux = {name: value for name, value in zip(self.tasks, values[1:], strict=True) if name in (tasks or self.tasks)}
        return values[0] if main else None, aux


def learn(method, problem, batches, **settings):
    """The weights after calls with the tasks of each of ``batches``, and with or without the main loss."""
    reweighter = Reweighter(method, problem.tasks, problem, **{"every": 1, "convergence": None, **settings})
    for tasks, main in batches:
        reweighter(*problem.losses(tasks, main=main))
    return reweighter


def round_robin(problem, rounds):
    return [([name], True) for name in problem.tasks] * rounds


def main_in_every_second_batch(problem, rounds):
    """With an even number of tasks, half of them are never in a batch with the main loss."""
    # A round begins with the main loss. With an odd number of tasks, every round but the first waits one call for it.
    names = problem.tasks * (rounds + rounds // 2)
    calls = rounds * len(problem.tasks) + (rounds - 1) * (len(problem.tasks) % 2)
    return [([name], i % 2 == 0) for i, name in enumerate(names)][:calls]


def sometimes_main_alone(problem, rounds):
    return [([name], True) for name in ["nothing", *problem.tasks]] * rounds


def some_at_a_time(problem, rounds):
    return [(problem.tasks[:-1], True), (problem.tasks[-1:], False)] * rounds


@every_method
@pytest.mark.parametrize("num_tasks", [2, 3, 5])
@pytest.mark.parametrize(
    "loader", [round_robin, main_in_every_second_batch, sometimes_main_alone, some_at_a_time], ids=lambda f: f.__name__
)
def test_one_task_per_batch_reaches_what_all_at_once_reaches(method, num_tasks, loader):
    """Constant gradients: every round equals one update with all tasks."""
    problem = Slopes(num_tasks)
    rounds = 20
    expected = learn(method, problem, [(problem.tasks, True)] * rounds)
    found = learn(method, problem, loader(problem, rounds))
    assert_close(found.weights, expected.weights, rtol=1e-9, atol=1e-9)
    assert set(found.weights.values()) != {1.0}


def train_round_robin(model, reweighter, steps, *, main_every=1, lr=0.1):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    history = []
    for step in range(steps):
        main, aux = model.losses()
        name = list(aux)[step % len(aux)]
        loss = reweighter(main if step % main_every == 0 else None, {name: aux[name]})
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(list(reweighter.weights.values()))
    return torch.tensor(history, dtype=torch.float64)


class PlantedTasks(Planted):
    """The planted problem with its first tasks only, or with more tasks that do not help."""

    def __init__(self, b):
        super().__init__()
        self.b = torch.tensor(b, dtype=torch.float64)
        size = len(b) + 1
        self.theta = nn.Parameter(torch.zeros(size, dtype=torch.float64))
        self.centres = torch.eye(size, dtype=torch.float64)[: len(b)]
        self.tasks = [str(i) for i in range(len(b))]

    def losses(self):
        aux = {name: self.loss(c) for name, c in zip(self.tasks, self.centres, strict=True)}
        return self.loss(self.b @ self.centres), aux


@pytest.mark.parametrize("main_every", [1, 2])
@pytest.mark.parametrize("b", [[0.8, 0.2], [0.7, 0.3, 0.0], [0.5, 0.2, 0.2, 0.1, 0.0]], ids=["2", "3", "5"])
def test_round_robin_finds_the_planted_weights(b, main_every):
    """The network moves between the batches of a round; the weights still end at the known best ones."""
    model = PlantedTasks(b)
    reweighter = Reweighter(ARML(lr=0.1), model.tasks, model, every=1, convergence=None)
    history = train_round_robin(model, reweighter, 150 * len(b), main_every=main_every, lr=0.05)
    assert_close(history[-1], len(b) * model.b, atol=0.05, rtol=0)


def test_round_robin_keeps_the_task_that_helps_and_gates_the_others():
    model = Signposts(1, -2, -2)
    reweighter = Reweighter(GatedARML(), list(model.multiples), model, every=1, convergence=None)
    weights = train_round_robin(model, reweighter, 360, lr=0.01)[150:300].mean(0)
    assert weights[0] > 10 * weights[1:].sum()


def test_many_parameters_are_compared_by_sketches():
    """Products of tasks from different batches are off by about 1 % of the lengths; the weights, by not much more."""
    problem = Slopes(3, num_parameters=3 * SIZE + 5)
    expected = learn(ARML(lr=0.05), problem, [(problem.tasks, True)] * 100)
    found = learn(ARML(lr=0.05), problem, round_robin(problem, 100))
    assert_close(found.weights, expected.weights, rtol=0, atol=0.05)
    assert max(expected.weights.values()) - min(expected.weights.values()) > 0.5


def test_sketches_keep_products():
    a, b = torch.randn(2, 10 * SIZE, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    b = b + 0.3 * a
    error = (sketch([a]) @ sketch([b]) - a @ b) / (a.norm() * b.norm())
    assert 0 < abs(float(error)) < 4 / SIZE**0.5


@pytest.mark.parametrize("every", [1, 2, 5, 6, Growing(most=6, rate=2)], ids=str)
def test_no_schedule_meets_the_same_task_for_ever(every):
    """Every sixth call of a loader with three tasks holds the same task."""
    problem = Slopes(3)
    reweighter = learn(ARML(lr=0.05), problem, round_robin(problem, 300), every=every)
    expected = learn(ARML(lr=0.05), problem, [(problem.tasks, True)] * 300, every=every)
    assert_close(reweighter.weights, expected.weights, atol=0.05, rtol=0)


def test_nothing_settles_for_lack_of_comparisons():
    """With one task of several, ARML cannot move: that is no convergence."""
    problem = Slopes(2)
    rule = Convergence(window=3)
    only_one = learn(ARML(), problem, [(["0"], True)] * 100, convergence=rule)
    assert set(only_one.weights.values()) == {1.0}
    assert not only_one.converged
    settled = learn(ARML(lr=0.1), problem, round_robin(problem, 100), convergence=rule)
    assert settled.converged
    assert set(settled.weights.values()) != {1.0}


def test_a_task_that_never_comes_keeps_its_weight_and_does_not_stop_the_others():
    problem = Slopes(3)
    limit = LONGEST * 3
    reweighter = learn(ARML(), problem, [(["0", "1"], True)] * (limit - 1))
    assert set(reweighter.weights.values()) == {1.0}  # still waiting for "2"
    changed = 0
    for _ in range(10):
        before = reweighter.weights
        reweighter(*problem.losses(["0", "1"]))
        changed += reweighter.weights != before
    assert changed == 10
    assert reweighter.weights["2"] == 1.0


def test_a_task_that_comes_back_is_learned_again():
    problem = Slopes(3)
    batches = [(["0", "1"], True)] * (LONGEST * 3 + 5)
    reweighter = learn(ARML(), problem, batches, every=2)
    for name in ["0", "1", "2"] * 20:
        reweighter(*problem.losses([name]))
    assert reweighter.weights["2"] != 1.0


def test_batches_with_all_tasks_need_no_rounds(monkeypatch):
    problem = Slopes(3)
    monkeypatch.setattr("arml.observer.measure_tasks", pytest.fail)
    reweighter = learn(ARML(), problem, [(problem.tasks, True)] * 5)
    assert set(reweighter.weights.values()) != {1.0}


def test_a_round_costs_one_backward_pass_per_task_and_batch(monkeypatch):
    problem = Slopes(4)
    passes, real = [], torch.autograd.grad
    monkeypatch.setattr("arml.gradients.backward.grad", lambda *args, **kw: (passes.append(1), real(*args, **kw))[1])
    learn(ARML(), problem, [(["0", "1"], True), (["0", "1", "2"], True), (["2"], True), (["3"], False)])
    assert len(passes) == 3 + 2 + 0 + 1  # main and two; main and one; nothing new; one


def test_resumes_exactly_within_a_round():
    problem = Slopes(3)
    batches = round_robin(problem, 6)
    whole = learn(ARML(), problem, batches)
    half = learn(ARML(), problem, batches[:10])
    file = io.BytesIO()
    torch.save(half.state_dict(), file)
    file.seek(0)
    resumed = Reweighter(ARML(), problem.tasks, problem, every=1, convergence=None)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    for tasks, main in batches[10:]:
        resumed(*problem.losses(tasks, main=main))
    assert resumed.weights == whole.weights


def test_copies_within_a_round():
    problem = Slopes(3)
    reweighter = learn(ARML(), problem, round_robin(problem, 1)[:2])
    twin = copy.deepcopy(reweighter)
    reweighter(*problem.losses(["2"]))
    assert set(twin.weights.values()) == {1.0}
    assert set(reweighter.weights.values()) != {1.0}


def test_aux_scale_applies_to_rounds():
    net = Net()
    ours = Reweighter(ARML(), TASKS, net.trunk, aux_scale=0.3)
    by_hand = Reweighter(ARML(), TASKS, net.trunk)
    for name in TASKS:
        main, aux = net.losses()
        ours(main, {name: aux[name]})
        by_hand(main, {name: 0.3 * aux[name]})
    assert_close(ours.weights, by_hand.weights)
    assert set(ours.weights.values()) != {1.0}


def test_all_at_once_finds_the_planted_weights():
    model = PlantedTasks([0.7, 0.3, 0.0])
    reweighter = Reweighter(ARML(lr=0.1), model.tasks, model, every=1, convergence=None)
    assert_close(train_all_at_once(model, reweighter, 200, lr=0.05)[-1], 3 * model.b, atol=0.05, rtol=0)
