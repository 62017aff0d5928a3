"""Losses are brought to the size of the main loss."""

import copy
import math

import pytest
import torch
from core.test_reweighter import TASKS, Net, train
from torch.testing import assert_close

from arml import ARML, Agreement, LinearFade, Reweighter, Uniform
from arml.units import LARGEST, MEMORY, find_units, no_sizes, remember_sizes


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64)


def units_after(*rows):
    """The units after updates with these losses; ``None``: not usable."""
    sizes = no_sizes(torch.zeros(len(rows[0]), dtype=torch.float64))
    for row in rows:
        losses = numbers(*[math.nan if loss is None else loss for loss in row])
        sizes = remember_sizes(sizes, losses, losses.isfinite())
    return find_units(sizes)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(2, 4, 0.5)], (1, 0.5, 4)),
        ([(2, -4, 0.5)], (1, 0.5, 4)),
        ([(-2, 4, 0.5)], (1, 0.5, 4)),
        # Means of 1.95 updates: (0.95 * 2 + 4) / 1.95 for the main task.
        ([(2, 4, 1), (4, 4, 3)], (1, (0.95 * 2 + 4) / (0.95 * 4 + 4), (0.95 * 2 + 4) / (0.95 + 3))),
        # Unknown sizes, and sizes of 0.
        ([(2, None, 0)], (1, 1, 1)),
        ([(None, 4, 1)], (1, 1, 1)),
        ([(0, 4, 1)], (1, 1, 1)),
        ([(2, 4, 1), (None, 8, 1)], (1, 2 / ((0.95 * 4 + 8) / 1.95), 2)),
        ([(2, 4, 1), (2, None, math.inf)], (1, 0.5, 2)),
        ([(1, 1e-40, 1e40)], (1, LARGEST, 1 / LARGEST)),
    ],
)
def test_units(rows, expected):
    assert_close(units_after(*rows), numbers(*expected))


def test_old_sizes_are_forgotten():
    unit = units_after((1, 1), *[(1, 100)] * 4 * MEMORY)[1]
    assert 0.01 < unit < 0.0103


@pytest.mark.parametrize("method", [Uniform(), ARML(), Agreement()], ids=repr)
def test_every_method_can_have_units(method):
    """The first update sees every auxiliary loss as large as the main one, and so does the sum."""
    net = Net()
    reweighter = Reweighter(method, TASKS, net.trunk, units=True, aux_scale=0.5, fade=LinearFade(4))
    main, aux = net.losses()
    loss = reweighter(main, aux)
    assert_close(loss, main * (1 + 0.5 * sum(reweighter.weights.values())))
    if reweighter.signals is not None and reweighter.signals.present is not None:
        assert_close(reweighter.signals.losses, main.detach() * numbers(1, *[0.5] * len(TASKS)))


def test_factors_are_what_losses_are_multiplied_by():
    net = Net()
    reweighter = Reweighter(tasks=TASKS, shared=net.trunk, aux_scale=0.5, fade=LinearFade(4))
    for share in (1, 0.75, 0.5):
        main, aux = net.losses()
        before = reweighter.share
        loss = reweighter(main, aux)
        reweighter._steps -= 1  # the share of the call, not of the next one
        assert before == share == reweighter.share
        factors = reweighter.factors
        reweighter._steps += 1
        assert_close(loss, main + sum(factors[name] * aux[name] for name in TASKS))
    assert Reweighter(ARML(), TASKS, net.trunk, aux_scale=0.5).factors == dict.fromkeys(TASKS, 0.5)


def test_resuming_is_exact_and_finds_tasks_by_name():
    net = Net()
    reweighter = Reweighter(tasks=TASKS, shared=net.trunk)
    train(net, reweighter, 7)
    for order in (TASKS, TASKS[::-1]):
        model = copy.deepcopy(net)
        resumed = Reweighter(tasks=order, shared=model.trunk)
        resumed.load_state_dict(reweighter.state_dict())
        assert resumed.factors == reweighter.factors
        assert resumed.weights == reweighter.weights
    original = copy.deepcopy(net)
    twin = Reweighter(tasks=TASKS, shared=original.trunk)
    twin.load_state_dict(reweighter.state_dict())
    assert train(original, twin, 20) == train(net, reweighter, 20)
    assert all(torch.equal(a, b) for a, b in zip(original.parameters(), net.parameters(), strict=True))


def test_a_loss_that_is_not_finite_leaves_its_unit_alone():
    net = Net()
    reweighter = Reweighter(tasks=TASKS, shared=net.trunk, every=1)
    train(net, reweighter, 2)
    before = reweighter.factors
    main, aux = net.losses()
    with pytest.warns(UserWarning, match="The loss or gradient of 'b' is not finite"):
        reweighter(main, {**aux, "b": aux["b"] * math.inf})
    assert reweighter._sizes.number.tolist() == [*[1 + 0.95 + 0.95**2] * 2, 1.95, *[1 + 0.95 + 0.95**2] * 2]
    assert math.isfinite(reweighter.factors["b"])
    assert before["b"] > 0


def test_a_loss_of_almost_nothing_does_not_overflow():
    """float32 cannot hold the quotient of the two sizes."""
    net = Net(dtype=torch.float32)
    reweighter = Reweighter(tasks=TASKS, shared=net.trunk)
    main, aux = net.losses()
    loss = reweighter(main, {**aux, "a": 1e-40 * aux["a"]})
    loss.backward()
    assert bool(loss.isfinite())


@pytest.mark.parametrize("num_tasks", [2, 4])
def test_backward_gives_the_gradients_of_the_joint_loss(num_tasks):
    tasks, grads = TASKS[:num_tasks], []
    torch.manual_seed(0)
    net = Net(tasks)
    for through_backward in (True, False):
        reweighter = Reweighter(tasks=tasks, shared=net.trunk)
        net.zero_grad()
        main, aux = net.losses()
        aux["a"] = 100 * aux["a"]
        if through_backward:
            reweighter.backward(main, aux)
        else:
            reweighter(main, aux).backward()
        grads.append([p.grad.clone() for p in net.parameters()])
    assert_close(*grads)


def test_a_loss_scale_changes_nothing():
    histories = []
    for loss_scale in (None, 1024.0):
        torch.manual_seed(0)
        net = Net()
        histories.append(train(net, Reweighter(tasks=TASKS, shared=net.trunk, loss_scale=loss_scale, every=1), 15))
    for one, other in zip(*histories, strict=True):
        assert one == pytest.approx(other, rel=1e-9)


def test_units_are_those_of_whole_batches_where_tasks_take_turns():
    """A network that stands still: one task per batch gives the units and weights of batches with all tasks."""
    net = Net()
    whole, turns = (Reweighter(tasks=TASKS, shared=net.trunk, every=1) for _ in range(2))
    for _ in range(8):
        whole(*net.losses())
        for task in TASKS:
            main, aux = net.losses()
            turns(main, {task: aux[task]})
    assert turns.weights == pytest.approx(whole.weights, rel=1e-6)
    assert turns.factors == pytest.approx(whole.factors, rel=1e-6)
