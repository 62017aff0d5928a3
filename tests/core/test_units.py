"""Losses are brought to the scale of the main loss."""

import copy
import math

import pytest
import torch
from core.test_reweighter import TASKS, Net, train
from torch.nn import functional as F
from torch.testing import assert_close

from arml import ARML, Agreement, LinearFade, Reweighter, Uniform
from arml.packing import unpack
from arml.units import LARGEST, LossScales, find_units, no_sizes


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64)


def units_after(*rows, same_outputs=False):
    """The units after updates with losses or gradients of these sizes; ``None``: not usable."""
    nothing = seen = no_sizes(torch.zeros(len(rows[0]), dtype=torch.float64))
    for row in rows:
        new = numbers(*[math.nan if size is None else size for size in row])
        seen = seen.add(new, new.isfinite())
    same = torch.full((len(rows[0]) - 1,), same_outputs)
    return find_units(seen, nothing, same) if same_outputs else find_units(nothing, seen, same)


def length_of(loss, layer):
    """Of its gradient on one layer, by the book."""
    return torch.cat(
        [g.flatten() for g in torch.autograd.grad(loss, list(layer.parameters()), retain_graph=True)]
    ).norm()


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(2, 4, 0.5)], (1, 0.5, 4)),
        # Means of two updates: 3 for the main task.
        ([(2, 4, 1), (4, 4, 3)], (1, 3 / 4, 3 / 2)),
        # Unknown sizes, and sizes of 0.
        ([(2, None, 0)], (1, 1, 1)),
        ([(None, 4, 1)], (1, 1, 1)),
        ([(0, 4, 1)], (1, 1, 1)),
        ([(2, 4, 1), (None, 8, 1)], (1, 2 / 6, 2)),
        ([(2, 4, 1), (2, None, math.inf)], (1, 0.5, 2)),
        ([(1, 1e-40, 1e40)], (1, LARGEST, 1 / LARGEST)),
    ],
)
@pytest.mark.parametrize("same_outputs", [True, False])
def test_units(rows, expected, same_outputs):
    assert_close(units_after(*rows, same_outputs=same_outputs), numbers(*expected))


@pytest.mark.parametrize("method", [Uniform(), ARML(), Agreement()], ids=repr)
def test_every_method_can_have_units(method):
    """The first update sees every auxiliary gradient as long as the main one on the last layer, and so does the sum."""
    net = Net()
    reweighter = Reweighter(method, TASKS, net.trunk, units=True, aux_scale=0.5, fade=LinearFade(4))
    main, aux = net.losses()
    loss = reweighter(main, aux)
    units = {name: length_of(main, net.trunk[-1]) / length_of(aux[name], net.trunk[-1]) for name in TASKS}
    assert_close(loss, main + 0.5 * sum(reweighter.weights[name] * units[name] * aux[name] for name in TASKS))
    if reweighter.signals is not None and reweighter.signals.present is not None:
        seen = torch.stack([main, *(0.5 * units[name] * aux[name] for name in TASKS)]).detach()
        assert_close(reweighter.signals.losses, seen)


def test_a_task_that_trains_the_main_outputs_is_brought_to_the_size_of_the_main_loss():
    """Both losses have the same 0: all answers are right. Gradients say how far each of them still is from it."""
    net = Net()
    reweighter = Reweighter(tasks=["source", "own"], shared=net.trunk)
    features = net.trunk(net.x)
    main, source = (F.mse_loss(net.heads["main"](features), net.y[name]) for name in ("main", "a"))
    own = F.mse_loss(net.heads["b"](features), net.y["b"])
    reweighter(main, {"source": 100 * source, "own": own})
    by_gradient = length_of(main, net.trunk[-1]) / length_of(own, net.trunk[-1])
    assert reweighter._scales.all.tolist() == pytest.approx(
        [1, float((main / source).detach()) / 100, float(by_gradient)]
    )


def test_gradients_are_not_measured_where_every_task_trains_the_main_outputs():
    net = Net()
    reweighter = Reweighter(tasks=["a", "b"], shared=net.trunk)
    outputs = net.heads["main"](net.trunk(net.x))
    reweighter(outputs.square().mean(), {name: F.mse_loss(outputs, net.y[name]) for name in ("a", "b")})
    assert reweighter._scales.losses.number.tolist() == [1, 1, 1]
    assert reweighter._scales.gradients.number.tolist() == [0, 0, 0]


@pytest.mark.parametrize("signs", [(1, -1), (-1, 1)])
def test_the_size_of_a_negative_loss_is_its_distance_from_0(signs):
    scales, both = LossScales(torch.zeros(2), 1.0, in_units=True), torch.ones(2, dtype=torch.bool)
    losses = torch.tensor([2.0, 4.0]) * torch.tensor(signs)
    scales.learn(losses, both, torch.zeros(2), ~both, 0, torch.ones(1, dtype=torch.bool))
    assert scales.all.tolist() == [1, 0.5]


def test_neither_a_factor_nor_an_offset_on_a_loss_changes_what_is_learned():
    histories = []
    for factor, offset in ((1, 0), (1e3, 0), (1e-3, 0), (1, -5), (1, 5)):
        torch.manual_seed(0)
        net = Net()
        reweighter, optimizer = Reweighter(tasks=TASKS, shared=net.trunk), torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(12):
            main, aux = net.losses()
            loss = reweighter(main, {**aux, "b": factor * aux["b"] + offset})
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        histories.append(torch.cat([p.detach().flatten() for p in net.trunk.parameters()]))
    for other in histories[1:]:
        assert_close(other, histories[0], rtol=1e-9, atol=1e-9)


def test_a_loss_near_0_by_nature_is_not_blown_up():
    """1 - cosine of two nearly equal vectors: its size says 0, its gradient what a step would take."""
    torch.manual_seed(0)
    net = Net(["views"])
    reweighter = Reweighter(tasks=["views"], shared=net.trunk)
    features, other = net.trunk(net.x), net.trunk(net.x + 0.3 * torch.randn_like(net.x))
    views = (1 - F.cosine_similarity(other, features.detach())).mean()
    main = F.mse_loss(net.heads["main"](features), net.y["main"])
    reweighter(main, {"views": views})
    expected = length_of(main, net.trunk[-1]) / length_of(views, net.trunk[-1])
    assert reweighter.factors["views"] == pytest.approx(float(expected))
    assert expected < 0.5 * main / views


def test_a_task_that_leaves_the_trunk_early_is_measured_where_it_leaves():
    torch.manual_seed(0)
    net = Net(["early"])
    early = torch.nn.Linear(8, 1, dtype=torch.float64)
    reweighter = Reweighter(tasks=["early"], shared=net.trunk)

    def losses():
        hidden = net.trunk[1](net.trunk[0](net.x))
        return F.mse_loss(net.heads["main"](net.trunk[2](hidden)), net.y["main"]), early(hidden).square().mean()

    main, aux = losses()
    reweighter(main, {"early": aux})
    where = torch.nn.ModuleList([net.trunk[0], net.trunk[2]])
    assert reweighter.factors["early"] == pytest.approx(float(length_of(main, where) / length_of(aux, net.trunk[0])))


@pytest.mark.parametrize("method", [Uniform(), Agreement()], ids=repr)
def test_units_are_measured_ever_more_rarely(method):
    net = Net()
    reweighter, measured = Reweighter(method, TASKS, net.trunk, units=True, every=1), []
    for call in range(40):
        before = reweighter._scales.gradients.number
        reweighter(*net.losses())
        measured += [call] * (not torch.equal(reweighter._scales.gradients.number, before))
    assert measured == [0, 1, 2, 4, 8, 16, 32]


def test_units_wait_for_an_update():
    net = Net()
    reweighter = Reweighter(tasks=TASKS, shared=net.trunk, every=5)
    for _ in range(8):
        reweighter(*net.losses())
    assert reweighter._scales.gradients.last.unique().tolist() == [5]


def test_a_task_that_comes_late_is_measured_at_once():
    net = Net()
    reweighter = Reweighter(Uniform(), TASKS, net.trunk, units=True)
    for call in range(6):
        main, aux = net.losses()
        reweighter(main, {name: aux[name] for name in TASKS[call < 5 :]})
        assert (reweighter.factors[TASKS[0]] == 1) == (call < 5)
    assert reweighter._scales.gradients.last.tolist() == [4, 5, 4, 4, 4]


def learn_sizes(rows, *, same_outputs):
    """The factors after these sizes of the main loss, or of its gradient; those of the other task are 1."""
    scales, both = LossScales(torch.zeros(2), 1.0, in_units=True), torch.ones(2, dtype=torch.bool)
    for call, size in enumerate(rows):
        sizes = torch.tensor([size, 1.0])
        losses, lengths = (sizes, torch.ones(2)) if same_outputs else (torch.ones(2), sizes)
        scales.learn(losses, both, lengths, both, call, torch.tensor([same_outputs]))
    return scales.all.tolist()


def test_lengths_are_averaged_over_the_whole_run():
    """A main gradient that vanishes as its few labels are learned does not take the other tasks along."""
    assert learn_sizes([4.0, 2.0, 0.0], same_outputs=False) == [1, 2]


def test_losses_are_compared_by_their_first_sizes():
    """Nor does a main loss that vanishes. A size of 0 tells nothing, and another one is waited for."""
    assert learn_sizes([4.0, 2.0, 3.0, 0.1, 0.0], same_outputs=True) == [1, 3]
    assert learn_sizes([0.0, 0.0, 0.0, 5.0], same_outputs=True) == [1, 5]


def test_methods_see_recent_lengths():
    """Half of the last length and half of those before, in units; 0 for a task that was never measured."""
    scales, both = LossScales(torch.zeros(3), 1.0, in_units=True), torch.tensor([True, True, False])
    for call, length in enumerate((4.0, 2.0)):
        lengths = torch.tensor([length, 2.0 * length, 1.0])
        scales.learn(torch.ones(3), both, lengths, both, call, torch.zeros(2, dtype=torch.bool))
    assert scales.all.tolist() == [1, 0.5, 1]
    assert scales.recent_lengths().tolist() == [3, 3, 0]


def test_a_state_without_gradients_is_continued():
    """Older versions kept sizes of losses only."""
    net = Net()
    reweighter = Reweighter(tasks=TASKS, shared=net.trunk)
    train(net, reweighter, 3)
    state = unpack(reweighter.get_extra_state())
    del state["lengths"]
    other = Reweighter(tasks=TASKS, shared=net.trunk)
    other.set_extra_state(state)
    assert other.factors == other.weights == reweighter.weights
    train(net, other, 2)
    assert other._scales.gradients.number.all()


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
    assert reweighter._scales.gradients.number.tolist() == [3, 3, 2, 3, 3]
    assert reweighter._scales.gradients.last.tolist() == [2, 2, 1, 2, 2]
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
