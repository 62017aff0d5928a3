"""The module a user holds."""

import copy
import io
import pickle

import pytest
import torch
from core.laws import EVERY_METHOD
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from arml import (
    ARML,
    AdaLoss,
    Convergence,
    Fixed,
    GradNorm,
    Growing,
    Reweighter,
    Uniform,
    shared_parameters,
)
from arml.gradients import double_backward, pairwise

TASKS = ["a", "b", "c", "d"]
every_method = pytest.mark.parametrize("method", EVERY_METHOD, ids=repr)


class Net(nn.Module):
    """A trunk that is shared, heads that are not, and random data for it."""

    def __init__(self, tasks=TASKS, *, hidden=nn.Tanh, dtype=torch.float64):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(3, 8), hidden(), nn.Linear(8, 4))
        self.heads = nn.ModuleDict({name: nn.Linear(4, 1) for name in ("main", *tasks)})
        self.to(dtype)
        self.x = torch.randn(16, 3, dtype=dtype)
        self.y = {name: torch.randn(16, 1, dtype=dtype) for name in self.heads}

    def losses(self):
        features = self.trunk(self.x)
        losses = {name: F.mse_loss(head(features), self.y[name]) for name, head in self.heads.items()}
        return losses.pop("main"), losses


def train(net, reweighter, steps, optimizer=None):
    optimizer = optimizer or torch.optim.SGD(net.parameters(), lr=0.1)
    history = []
    for _ in range(steps):
        main, aux = net.losses()
        loss = reweighter(main=main, aux=aux)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(reweighter.weights)
    return history


@every_method
def test_returns_the_weighted_sum(method):
    net = Net()
    reweighter = Reweighter(method, TASKS, net.trunk, aux_scale=0.5, units=False)
    main, aux = net.losses()
    loss = reweighter(main=main, aux=aux)
    expected = reweighter.main_weight * main + sum(w * 0.5 * aux[name] for name, w in reweighter.weights.items())
    assert_close(loss, expected)
    loss.backward()


@every_method
def test_resumes_exactly_on_a_fresh_instance(method):
    """Weights, memory and schedule continue bit for bit from a checkpoint file, also between two updates."""
    net = Net()

    def fresh():
        model = copy.deepcopy(net)
        return model, Reweighter(
            method, TASKS, model.trunk, every=Growing(4, rate=2), convergence=Convergence(window=2)
        )

    model, reweighter = fresh()
    uninterrupted = train(model, reweighter, 14)
    model, reweighter = fresh()
    train(model, reweighter, 5)
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "reweighter": reweighter.state_dict()}, file)
    file.seek(0)
    checkpoint = torch.load(file, weights_only=True)
    model, reweighter = fresh()
    model.load_state_dict(checkpoint["model"])
    reweighter.load_state_dict(checkpoint["reweighter"])
    assert train(model, reweighter, 9) == uninterrupted[5:]


@every_method
def test_copies_and_pickles(method):
    net = Net()
    reweighter = Reweighter(method, TASKS, net.trunk)
    train(net, reweighter, 2)
    assert copy.deepcopy(reweighter).weights == reweighter.weights
    assert pickle.loads(pickle.dumps(reweighter)).weights == reweighter.weights


def test_the_users_model_is_not_part_of_the_module():
    reweighter = Reweighter(ARML(), TASKS, Net().trunk)
    assert list(reweighter.parameters()) == []
    assert list(reweighter.state_dict()) == ["_extra_state"]


def count_updates(reweighter):
    calls, update = [], reweighter._update
    reweighter._update = lambda *args: (calls.append(1), update(*args))[1]
    return calls


def test_measures_at_the_first_call_and_then_at_every_nth():
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, net.trunk, every=4)
    history = train(net, reweighter, 9)
    changed = [i for i in range(9) if history[i] != (history[i - 1] if i else dict.fromkeys(TASKS, 1.0))]
    assert changed == [0, 4, 8]


def test_by_default_measures_often_at_first_and_rarely_later():
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, net.trunk, convergence=None)
    measured, last = [], None
    for call in range(400):
        reweighter(*net.losses())
        measured += [call] if reweighter.signals is not last else []
        last = reweighter.signals
    assert measured[:16] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20]
    assert {later - earlier for earlier, later in zip(measured[-6:], measured[-5:], strict=False)} == {25}
    assert last.stride == 5  # the root of it


def test_methods_without_gradients_are_updated_at_every_call():
    net = Net()
    history = train(net, Reweighter(AdaLoss(), TASKS, net.trunk, every=4), 6)
    assert all(history[i] != history[i - 1] for i in range(1, 6))


def test_theta_moves_on_every_step_with_or_without_an_update():
    net = Net()
    reweighter, optimizer = Reweighter(ARML(), TASKS, net.trunk, every=2), torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(4):
        before = net.trunk[0].weight.clone()
        train(net, reweighter, 1, optimizer)
        assert not torch.equal(net.trunk[0].weight, before)


def test_no_gradient_is_measured_after_convergence(monkeypatch):
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, net.trunk, every=1, convergence=Convergence(at_most=2))
    train(net, reweighter, 4)
    assert reweighter.converged
    calls = count_updates(reweighter)
    monkeypatch.setattr(torch.autograd, "grad", pytest.fail)
    weights = reweighter.weights
    train(net, reweighter, 5)
    assert reweighter.weights == weights
    assert calls == []


def test_convergence_can_be_switched_off():
    net = Net(["a"])
    reweighter = Reweighter(ARML(), ["a"], net.trunk, every=1, convergence=None)
    train(net, reweighter, 5)  # with the default rule, the only weight settles at once
    assert not reweighter.converged


def test_one_auxiliary_task_has_weight_one_and_settles_at_once():
    net = Net(["a"])
    reweighter = Reweighter(ARML(), ["a"], net.trunk, every=1, convergence=Convergence(window=3))
    train(net, reweighter, 6)
    assert reweighter.weights == {"a": 1.0}
    assert reweighter.converged


def test_evaluation_leaves_the_weights_alone():
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, net.trunk, every=1)
    with torch.no_grad():
        main, aux = net.losses()
        assert_close(reweighter(main=main, aux=aux), main + sum(aux.values()))
    reweighter.eval()
    main, aux = net.losses()
    assert_close(reweighter(main=main, aux=aux), main + sum(aux.values()))
    assert set(reweighter.weights.values()) == {1.0}


def test_without_main_the_joint_loss_has_the_auxiliary_part_only():
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, net.trunk, train_on_main=False)
    main, aux = net.losses()
    loss = reweighter(main=main, aux=aux)
    assert_close(loss, sum(w * aux[name] for name, w in reweighter.weights.items()))
    assert set(reweighter.weights.values()) != {1.0}
    loss.backward()
    assert net.heads["main"].weight.grad is None
    with pytest.raises(ValueError, match="nothing to train on"):
        reweighter(main=net.losses()[0])


def test_aux_scale_comes_before_everything():
    """Scaling in the Reweighter is scaling the losses by hand."""
    net = Net()
    ours = Reweighter(ARML(), TASKS, net.trunk, aux_scale=0.3)
    main, aux = net.losses()
    by_hand = Reweighter(ARML(), TASKS, net.trunk)
    loss = by_hand(main=main, aux={name: 0.3 * loss for name, loss in aux.items()})
    assert_close(ours(main=main, aux=aux), loss)
    assert ours.weights == by_hand.weights


@every_method
def test_tasks_may_be_missing_from_a_batch(method):
    net = Net()
    reweighter = Reweighter(method, TASKS, net.trunk, every=1, units=False)
    train(net, reweighter, 2)
    before = reweighter.weights
    main, aux = net.losses()
    del aux["b"], aux["d"]
    loss = reweighter(main=main, aux=aux)
    assert (reweighter.weights["b"], reweighter.weights["d"]) == (before["b"], before["d"])
    weights = reweighter.weights
    assert_close(loss, reweighter.main_weight * main + weights["a"] * aux["a"] + weights["c"] * aux["c"])
    loss.backward()


def test_a_batch_without_main_labels_waits_for_one_that_has_them():
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, net.trunk, every=5)
    main, aux = net.losses()
    assert_close(reweighter(aux=aux), sum(aux.values()))
    assert set(reweighter.weights.values()) == {1.0}
    reweighter(main=main, aux=aux)
    assert set(reweighter.weights.values()) != {1.0}
    first = reweighter.weights
    reweighter(main=main)
    assert reweighter.weights == first


def test_mixed_precision():
    """bfloat16 autocast gives about the weights of float32."""
    net = Net(dtype=torch.float32)
    exact, low = (Reweighter(ARML(), TASKS, net.trunk, every=1) for _ in range(2))
    exact(*net.losses())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = low(*net.losses())
    assert loss.dtype == torch.float32
    assert_close(
        torch.tensor(list(low.weights.values())), torch.tensor(list(exact.weights.values())), atol=0.02, rtol=0
    )
    loss.backward()


def test_shared_by_module_parameters_or_names_is_the_same():
    net = Net()
    forms = [net.trunk, net.trunk.parameters(), dict(net.trunk.named_parameters()), shared_parameters(net, "trunk")]
    found = []
    for shared in forms:
        reweighter = Reweighter(ARML(), TASKS, shared)
        reweighter(*net.losses())
        found.append(reweighter.weights)
    assert all(weights == found[0] for weights in found)


def test_gradnorm_measures_on_its_named_layer():
    net = Net()
    found = []
    for shared, layer in [(net.trunk, "2"), (net.trunk[2], None), (shared_parameters(net, "trunk"), "trunk.2")]:
        reweighter = Reweighter(GradNorm(layer=layer), TASKS, shared)
        reweighter(*net.losses())
        found.append(reweighter.weights)
    assert found[0] == found[1] == found[2]
    whole = Reweighter(GradNorm(), TASKS, net.trunk)
    whole(*net.losses())
    assert whole.weights != found[0]
    with pytest.raises(ValueError, match=r"layer 'last', which is not among the shared parameters. Known: 0.weight"):
        Reweighter(GradNorm(layer="last"), TASKS, net.trunk)


@pytest.mark.parametrize("hidden", [nn.Tanh, nn.Dropout, lambda: nn.BatchNorm1d(8)], ids=["tanh", "dropout", "norm"])
@pytest.mark.parametrize("by", ["module", "parameters"])
def test_a_closure_gives_the_same_weights_and_the_same_training(hidden, by):
    net = Net(hidden=hidden)
    twin = copy.deepcopy(net)
    histories = []
    for model, with_closure in ((net, True), (twin, False)):
        shared = model.trunk if by == "module" else model.trunk.parameters()
        reweighter = Reweighter(ARML(), TASKS, shared, every=2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        torch.manual_seed(3)
        for _ in range(6):
            loss = reweighter(closure=model.losses) if with_closure else reweighter(*model.losses())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        histories.append(list(reweighter.weights.values()))
    assert_close(histories[0], histories[1], rtol=1e-6, atol=1e-6)
    for name, value in net.state_dict().items():
        assert_close(value, twin.state_dict()[name], rtol=1e-5, atol=1e-6)


def test_losses_and_a_closure_that_draws_again_fall_back_with_a_warning():
    net = Net(hidden=nn.Dropout)
    reweighter = Reweighter(ARML(), TASKS, net.trunk)
    by_graph = Reweighter(ARML(), TASKS, net.trunk)
    main, aux = net.losses()
    with pytest.warns(UserWarning, match="without losses"):
        reweighter(main, aux, closure=net.losses)
    by_graph(main, aux)
    assert reweighter.weights == by_graph.weights


def test_the_engine_can_be_chosen():
    net = Net()
    found = []
    for engine in (pairwise, double_backward):
        reweighter = Reweighter(ARML(), TASKS, net.trunk, engine=engine)
        reweighter(*net.losses())
        found.append(list(reweighter.weights.values()))
    assert_close(found[0], found[1])


def test_frozen_trunk_leaves_the_weights():
    net = Net()
    net.trunk.requires_grad_(False)
    reweighter = Reweighter(ARML(), TASKS, net.trunk, every=1)
    train(net, reweighter, 2)
    assert set(reweighter.weights.values()) == {1.0}


def test_gradient_accumulation_and_clipping():
    net = Net()
    reweighter, optimizer = Reweighter(ARML(), TASKS, net.trunk, every=2), torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        for _ in range(2):
            (reweighter(*net.losses()) / 2).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    assert set(reweighter.weights.values()) != {1.0}


def test_what_the_last_update_saw_is_there_to_record():
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, net.trunk)
    assert reweighter.signals is None
    main, aux = net.losses()
    reweighter(main, aux)
    assert_close(reweighter.signals.losses, torch.stack([main, *aux.values()]).detach())
    assert reweighter.signals.alignment.shape == (1, 5)


def test_repr_says_what_it_does():
    assert "ARML(lr=0.05" in repr(Reweighter(ARML(), TASKS, Net().trunk))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r, m, a: r(m, {"rotaton": m}), "Unknown auxiliary task 'rotaton'. Known: a, b, c, d. Use one of"),
        (lambda r, m, a: r(m, a | {"b": torch.stack([m, m])}), r"Loss 'b' has shape \(2,\). .* with .mean\(\)"),
        (lambda r, m, a: r(m, a | {"b": m.detach()}), r"Loss 'b' has no graph \(requires_grad=False\)"),
        (lambda r, m, a: r(m, a | {"b": 0.5}), "Loss 'b' should be a tensor .* Got 0.5"),
        (lambda r, m, a: r(m.long(), a), "Loss 'main' should be a tensor of floating point"),
        (lambda r, m, a: r(m, list(a.values())), "`aux` should map task names to losses, such as .* Got list"),
        (lambda r, m, a: r(), "No loss was given. Pass `main`, or at least one of a, b, c, d"),
    ],
)
def test_wrong_losses_get_an_error_that_helps(call, message):
    net = Net()
    reweighter = Reweighter(Uniform(), TASKS, net.trunk)
    with pytest.raises((ValueError, TypeError), match=message):
        call(reweighter, *net.losses())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tasks": []}, "different names of auxiliary tasks, none of them 'main'. Got"),
        ({"tasks": "rotation"}, "Got 'rotation'"),
        ({"tasks": ["a", "a"]}, r"Got \['a', 'a'\]"),
        ({"tasks": ["main"]}, "none of them 'main'"),
        ({"shared": []}, r"`shared` \(list\) holds no parameters. Pass the part of the model all tasks go through"),
        ({"shared": nn.Tanh()}, r"`shared` \(Tanh\) holds no parameters"),
        ({"every": 0}, "`every` should be a whole number of at least 1. Got 0"),
        ({"aux_scale": -1.0}, "`aux_scale` should be a positive number. Got -1.0"),
        ({"method": Fixed((1.0,))}, "Fixed holds 1 weights"),
    ],
)
def test_wrong_settings_get_an_error_that_helps(settings, message):
    with pytest.raises(ValueError, match=message):
        Reweighter(**({"method": ARML(), "tasks": TASKS, "shared": Net().trunk} | settings))


def test_a_trunk_that_computed_nothing_is_noticed():
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, copy.deepcopy(net).trunk)
    with pytest.raises(ValueError, match=r"No loss depends on the shared parameters .* not a copy of it"):
        reweighter(*net.losses())
