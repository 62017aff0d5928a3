"""Leaving out the losses of tasks that are not active changes nothing."""

import copy

import pytest
import torch
from core.test_reweighter import TASKS, Net
from torch.nn import functional as F

from arml import (
    ARML,
    OLAUX,
    AdaLoss,
    Convergence,
    CosineFade,
    CosineSim,
    Fixed,
    GatedARML,
    GradNorm,
    Growing,
    LinearFade,
    MainOnlyAtEnd,
    Reweighter,
    Uniform,
)

GATED = GatedARML(ARML(lr=0.3), decay=0.5, warmup=2)


class Noisy(Net):
    """Fresh random targets at every step: gates close and open again."""

    def losses_at(self, step, tasks):
        generator = torch.Generator().manual_seed(step)
        features = self.trunk(torch.randn(6, 3, generator=generator).double())
        targets = {name: torch.randn(6, 1, generator=generator).double() for name in self.heads}
        losses = {n: F.mse_loss(self.heads[n](features), targets[n]) for n in ("main", *tasks)}
        return losses.pop("main"), losses


def train_twins(make, steps, *, holds=None, make_optimizer=None):
    """Trains twice, once without inactive tasks; returns both Reweighters, their networks, and what was left out.

    ``holds(step)``: the tasks that a batch holds.
    """
    make_optimizer = make_optimizer or (lambda parameters: torch.optim.SGD(parameters, lr=0.1))
    nets, found, left_out = [Noisy()], [], []
    nets.append(copy.deepcopy(nets[0]))
    for net, skips in zip(nets, (False, True), strict=True):
        reweighter, optimizer, history = make(net), make_optimizer(net.parameters()), []
        for step in range(steps):
            tasks = TASKS if holds is None else holds(step)
            if skips:
                left_out += [(step, name) for name in tasks if name not in reweighter.active_tasks]
                tasks = [name for name in tasks if name in reweighter.active_tasks]
            optimizer.zero_grad()
            reweighter(*net.losses_at(step, tasks)).backward()
            optimizer.step()
            history.append((reweighter.weights, reweighter.share, reweighter.converged))
        found.append((reweighter, history))
    (plain, expected), (skipping, history) = found
    assert history == expected
    assert torch.equal(plain.get_extra_state(), skipping.get_extra_state())
    return nets, left_out


def assert_equal(nets, names=("main", *TASKS)):
    parts = [[net.trunk, *(net.heads[name] for name in names)] for net in nets]
    for one, other in zip(*parts, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize("every", [1, 3, Growing(most=5, rate=4)], ids=repr)
@pytest.mark.parametrize(
    "method",
    [GATED, ARML(lr=0.5), CosineSim(), OLAUX(lr=0.5), GradNorm(lr=0.5), AdaLoss(), Uniform(), Fixed([1.0, 0, 0.5, 0])],
    ids=repr,
)
def test_skipping_is_bit_identical(method, every):
    nets, left_out = train_twins(lambda n: Reweighter(method, TASKS, n.trunk, every=every, convergence=None), 40)
    assert_equal(nets)
    if isinstance(method, GatedARML | CosineSim) and every != 1:
        assert len(left_out) > 5
        assert {name for _, name in left_out} == set(TASKS)  # so gates that closed have opened again


@pytest.mark.parametrize("method", [GATED, CosineSim(), Uniform()], ids=repr)
@pytest.mark.parametrize("fade", [LinearFade(9), CosineFade(9), MainOnlyAtEnd(9)], ids=repr)
def test_skipping_is_bit_identical_after_a_fade(method, fade):
    nets, left_out = train_twins(lambda n: Reweighter(method, TASKS, n.trunk, every=3, fade=fade), 15)
    assert_equal(nets)
    assert [(step, name) for step, name in left_out if step >= 9] == [(s, n) for s in range(9, 15) for n in TASKS]


@pytest.mark.parametrize("method", [Uniform(), ARML(lr=0.1)], ids=repr)
def test_skipping_after_a_fade_is_bit_identical_for_an_optimiser_with_memory(method):
    """Heads that have faded out stand still, whether their loss is computed or not."""
    nets, left_out = train_twins(
        lambda n: Reweighter(method, TASKS, n.trunk, every=1, fade=LinearFade(8)),
        16,
        make_optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.1),
    )
    assert_equal(nets)
    assert len(left_out) == 8 * len(TASKS)


CORNER = ARML(lr=50.0, max_step=float("inf"))
"""Switches tasks off at once."""


def test_skipping_is_bit_identical_after_convergence():
    settings = {"every": 2, "convergence": Convergence(at_most=5)}
    nets, left_out = train_twins(lambda n: Reweighter(CORNER, TASKS, n.trunk, **settings), 25)
    assert_equal(nets)
    assert any(step == 24 for step, _ in left_out)


def test_an_optimiser_with_memory_moves_the_head_of_a_task_that_is_off_only_if_its_loss_is_passed():
    """Weight decay, like momentum, moves what has a gradient of zeros. All that counts is bit for bit the same."""
    nets, left_out = train_twins(
        lambda n: Reweighter(CORNER, TASKS, n.trunk, every=2, convergence=Convergence(at_most=1)),
        9,
        make_optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.1),
    )
    off = {name for step, name in left_out if step == 8}
    assert off
    assert_equal(nets, ["main", *(name for name in TASKS if name not in off)])
    assert all(not torch.equal(*(net.heads[name].weight for net in nets)) for name in off)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("method", [GATED, CosineSim()], ids=repr)
def test_skipping_is_bit_identical_for_batches_with_some_of_the_tasks(method, seed):
    """Task c is away for so long that no round waits for it, and comes back now and then."""
    generator = torch.Generator().manual_seed(seed)
    held = (torch.rand(120, len(TASKS), generator=generator) < 0.8).tolist()

    def holds(step):
        here = [name for name, is_held in zip(TASKS, held[step], strict=True) if is_held]
        return [name for name in here if name != "c" or step < 20 or step % 60 > 50]

    nets, left_out = train_twins(
        lambda n: Reweighter(method, TASKS, n.trunk, every=4, convergence=None), 120, holds=holds
    )
    assert_equal(nets)
    assert left_out


def test_a_closure_may_ask_which_tasks_are_active():
    net = Noisy()
    twin = copy.deepcopy(net)
    by_closure, by_losses = (Reweighter(CosineSim(), TASKS, n.trunk, every=3, convergence=None) for n in (net, twin))
    for step in range(12):
        by_closure(closure=lambda step=step: net.losses_at(step, by_closure.active_tasks))
        by_losses(*twin.losses_at(step, by_losses.active_tasks))
        assert by_closure.weights == by_losses.weights
        assert by_closure.active_tasks == by_losses.active_tasks


def test_active_tasks_a_person_can_check():
    net = Net()
    assert Reweighter(Fixed([1.0, 0.0, 2.0, 0.0]), TASKS, net.trunk).active_tasks == ("a", "c")
    assert Reweighter(AdaLoss(), TASKS, net.trunk).active_tasks == tuple(TASKS)
    reweighter = Reweighter(CosineSim(), TASKS, net.trunk, every=3, convergence=None)
    for _ in range(2):
        assert reweighter.active_tasks == tuple(TASKS)  # the next call updates
        reweighter(*net.losses())
        on = tuple(name for name, weight in reweighter.weights.items() if weight > 0)
        assert 0 < len(on) < len(TASKS)
        for _ in range(2):
            assert reweighter.active_tasks == on
            reweighter(*net.losses())


def test_a_loop_may_ask_for_one_task():
    reweighter = Reweighter(Fixed([1.0, 0.0, 2.0, 0.0]), TASKS, Net().trunk)
    assert [reweighter.needs(task) for task in TASKS] == [True, False, True, False]
    with pytest.raises(ValueError, match=r"Unknown auxiliary task 'e'\. Known: a, b, c, d"):
        reweighter.needs("e")


def test_with_all_tasks_off_there_is_a_loss_without_any_of_them():
    net = Net()
    reweighter = Reweighter(Fixed([0.0] * 4), TASKS, net.trunk, train_on_main=False)
    assert reweighter.active_tasks == ()
    loss = reweighter(net.losses()[0], {})
    assert float(loss.detach()) == 0
    loss.backward()
    assert all(p.grad is None for p in net.parameters())
