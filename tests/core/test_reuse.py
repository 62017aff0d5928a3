"""`reweighter.backward(...)` fills `.grad` as a call and `backward()` do, and leaves out passes that an update made."""

import copy
import os

import pytest
import torch
import torch.distributed as dist
from core.zoo import (
    batch_norm,
    checkpointed,
    convolutions,
    frozen_first_layer,
    mixed_precision_of_parameters,
    parameters_only,
    plain,
    tasks_on_different_batches,
    tied_weights,
    unused_parameter,
)
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

from arml import ARML, CosineSim, GatedARML, Reweighter, Uniform
from arml import reuse as module
from arml.gradients import pairwise

TASKS = ["a", "b"]
ZOO = [
    batch_norm,
    checkpointed,
    convolutions,
    frozen_first_layer,
    mixed_precision_of_parameters,
    parameters_only,
    plain,
    tasks_on_different_batches,
    tied_weights,
    unused_parameter,
]


class Net(nn.Module):
    """A trunk that is shared, heads that are not, a spare parameter, and one that a single task uses."""

    def __init__(self, dtype=torch.float64, channels_last=False):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(2, 6, 3, bias=False), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 4, 3))
        self.trunk.register_parameter("spare", nn.Parameter(torch.randn(3)))
        self.trunk.register_parameter("of_main", nn.Parameter(torch.randn(4)))
        self.heads = nn.ModuleDict({name: nn.Linear(4, 1) for name in ("main", *TASKS)})
        self.to(dtype)
        if channels_last:
            self.to(memory_format=torch.channels_last)
        self.x = torch.randn(9, 2, 8, 8, dtype=dtype)
        self.y = {name: torch.randn(9, 1, dtype=dtype) for name in self.heads}

    def losses(self, *missing):
        features = self.trunk(self.x).mean((2, 3))
        own = {"main": features + self.trunk.of_main}
        losses = {
            name: F.mse_loss(head(own.get(name, features)), self.y[name])
            for name, head in self.heads.items()
            if name not in missing
        }
        return losses.pop("main", None), losses


@pytest.fixture
def reused(monkeypatch):
    """Counts the training steps that added up stored gradients."""
    calls = []
    original = module.backward_from_tasks

    def count(*given):
        calls.append(1)
        original(*given)

    monkeypatch.setattr("arml.reweighter.backward_from_tasks", count)
    return calls


def gradients(net):
    return {name: p.grad for name, p in net.named_parameters()}


def compare(net, reweighter, losses=lambda net: net.losses(), steps=3, rtol=1e-6, **how):
    """Trains two copies, one by each way; both must have the same gradients, weights and buffers."""
    twin, other = copy.deepcopy((net, reweighter))
    for _ in range(steps):
        for one in (net, twin):
            one.zero_grad()
        main, aux = losses(net)
        joint = reweighter.backward(main, aux, **how)
        expected = other(*losses(twin), **how)
        expected.backward()
        assert not joint.requires_grad
        assert_close(joint, expected.detach())
        assert_close(reweighter.weights, other.weights)
        for (name, found), wanted in zip(gradients(net).items(), gradients(twin).values(), strict=True):
            assert (found is None) == (wanted is None), name
            if wanted is not None:
                assert_close(
                    found, wanted, rtol=rtol, atol=rtol * float(wanted.abs().max()), msg=lambda m, n=name: n + m
                )
                assert found.stride() == wanted.stride()
        assert_close(dict(net.named_buffers()), dict(twin.named_buffers()))
        with torch.no_grad():
            for p, q in zip(net.parameters(), twin.parameters(), strict=True):
                if q.grad is not None:
                    p -= 0.1 * q.grad
                    q -= 0.1 * q.grad


@pytest.mark.parametrize("method", [ARML(), GatedARML(), CosineSim()], ids=repr)
@pytest.mark.parametrize("train_on_main", [True, False])
@pytest.mark.parametrize("aux_scale", [1.0, 0.3])
def test_gradients_of_all_parameters_are_those_of_the_usual_way(method, train_on_main, aux_scale, reused):
    net = Net()
    settings = {"every": 1, "convergence": None, "train_on_main": train_on_main, "aux_scale": aux_scale}
    compare(net, Reweighter(method, TASKS, net.trunk, **settings))
    assert len(reused) == 3


@pytest.mark.parametrize("channels_last", [False, True])
def test_single_precision_differs_by_rounding(channels_last, reused):
    net = Net(torch.float32, channels_last)
    twin = copy.deepcopy(net)
    Reweighter(ARML(), TASKS, net.trunk, every=1).backward(*net.losses())
    Reweighter(ARML(), TASKS, twin.trunk, every=1)(*twin.losses()).backward()
    pairs = [(p.grad, q.grad) for p, q in zip(net.parameters(), twin.parameters(), strict=True) if q.grad is not None]
    assert all(found.stride() == wanted.stride() for found, wanted in pairs)
    found, wanted = (torch.cat([part.flatten() for part in parts]) for parts in zip(*pairs, strict=True))
    assert float((found - wanted).norm() / wanted.norm()) < 1e-6
    assert len(reused) == 1


@pytest.mark.parametrize("case", ZOO, ids=lambda case: case.__name__)
def test_the_zoo_of_networks(case, reused):
    names, models = ["a", "b", "c", "d"], []
    for fill in (lambda r, losses: r.backward(*losses), lambda r, losses: r(*losses).backward()):
        torch.manual_seed(0)
        made = case()
        main, *aux = made.losses()
        reweighter = Reweighter(ARML(), names, made.shared, every=1, engine=pairwise)
        fill(reweighter, (main, dict(zip(names, aux, strict=True))))
        models.append(made.model)
    for found, wanted in zip(*(gradients(model).values() for model in models), strict=True):
        assert (found is None) == (wanted is None)
        if wanted is not None:
            assert_close(found, wanted, rtol=1e-5, atol=1e-6)
    assert_close(*(dict(model.named_buffers()) for model in models))
    assert len(reused) == 1


def test_gradients_are_added_to_those_that_are_there(reused):
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, net.trunk, every=1)
    twin, other = copy.deepcopy((net, reweighter))
    for _ in range(3):
        reweighter.backward(*net.losses())
        other(*twin.losses()).backward()
    for found, wanted in zip(gradients(net).values(), gradients(twin).values(), strict=True):
        assert_close(found, wanted)
    assert len(reused) == 3


def test_steps_without_an_update_are_the_usual_ones(reused):
    net = Net(torch.float32)
    compare(net, Reweighter(ARML(), TASKS, net.trunk, every=10), steps=4, rtol=1e-5)
    assert len(reused) == 1
    compare(net, Reweighter(Uniform(), TASKS, net.trunk))
    frozen = Reweighter(ARML(), TASKS, net.trunk, every=1).eval()
    compare(net, frozen)
    assert len(reused) == 1


def test_missing_tasks(reused):
    net = Net()
    compare(net, Reweighter(ARML(), TASKS, net.trunk, every=1), lambda net: net.losses("b"))
    compare(net, Reweighter(ARML(), TASKS, net.trunk, every=1, train_on_main=False), lambda net: net.losses("main"))
    compare(net, Reweighter(CosineSim(), TASKS, net.trunk, every=1), lambda net: net.losses("a"))
    compare(net, Reweighter(ARML(), TASKS, net.trunk, every=1))
    assert len(reused) >= 3


def test_a_loss_that_is_not_finite_stays_part_of_the_joint_loss(reused):
    net = Net()

    def losses(net):
        main, aux = net.losses()
        return main, {"a": aux["a"] / 0, "b": aux["b"]}

    reweighter = Reweighter(ARML(), TASKS, net.trunk, every=1)
    with pytest.warns(UserWarning, match="'a' is not finite"):
        joint = reweighter.backward(*losses(net))
    assert not joint.isfinite()
    assert not net.trunk[0].weight.grad.isfinite().all()
    assert not reused


def test_one_loss_computed_from_another(reused):
    net = Net()

    def losses(net):
        main, aux = net.losses()
        return main, {"a": aux["a"] + 0.5 * main, "b": aux["b"] * aux["a"]}

    compare(net, Reweighter(ARML(), TASKS, net.trunk, every=1), losses)
    assert len(reused) == 3


def test_a_closure_is_the_usual_way(reused):
    net = Net()
    twin, reweighter = copy.deepcopy(net), Reweighter(ARML(), TASKS, net.trunk, every=1)
    reweighter.backward(closure=net.losses)
    Reweighter(ARML(), TASKS, twin.trunk, every=1)(closure=twin.losses).backward()
    assert_close(net.trunk[0].weight.grad, twin.trunk[0].weight.grad)
    assert not reused


@pytest.mark.parametrize("loss_scale", [None, 64.0, "scaler"])
def test_a_scaler_multiplies_gradients_not_the_returned_loss(loss_scale, reused):
    net = Net()
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    reweighter = Reweighter(
        ARML(), TASKS, net.trunk, every=1, loss_scale=scaler if loss_scale == "scaler" else loss_scale
    )
    twin = copy.deepcopy(net)
    other = Reweighter(ARML(), TASKS, twin.trunk, every=1)
    joint, expected = reweighter.backward(*net.losses(), scaler=scaler), other(*twin.losses())
    (64 * expected).backward()
    assert_close(joint, expected.detach())
    for found, wanted in zip(gradients(net).values(), gradients(twin).values(), strict=True):
        assert_close(found, wanted)
    assert len(reused) == (loss_scale is not None), "rows of another scale may have lost small numbers"
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    scaler.step(optimizer)
    scaler.update()


def test_a_loss_scale_alone_leaves_gradients_as_they_are(reused):
    net = Net()
    twin = copy.deepcopy(net)
    Reweighter(ARML(), TASKS, net.trunk, every=1, loss_scale=1024.0).backward(*net.losses())
    Reweighter(ARML(), TASKS, twin.trunk, every=1)(*twin.losses()).backward()
    for found, wanted in zip(gradients(net).values(), gradients(twin).values(), strict=True):
        assert_close(found, wanted)
    assert len(reused) == 1


def test_hooks_of_parameters_are_called_once_per_step(reused):
    net, calls = Net(), []
    net.trunk[0].weight.register_post_accumulate_grad_hook(lambda p: calls.append("shared"))
    net.heads["a"].weight.register_post_accumulate_grad_hook(lambda p: calls.append("head"))
    Reweighter(ARML(), TASKS, net.trunk, every=1).backward(*net.losses())
    assert sorted(calls) == ["head", "shared"]
    assert len(reused) == 1


def test_a_hook_that_changes_a_gradient_does_so_once(reused):
    net = Net()
    net.trunk[0].weight.register_hook(lambda g: 2 * g)
    twin = copy.deepcopy(net)
    twin.trunk[0].weight.register_hook(lambda g: 2 * g)
    Reweighter(ARML(), TASKS, net.trunk, every=1).backward(*net.losses())
    Reweighter(ARML(), TASKS, twin.trunk, every=1)(*twin.losses()).backward()
    assert_close(net.trunk[0].weight.grad, twin.trunk[0].weight.grad)
    assert not reused


def test_sparse_gradients_stay_sparse(reused):
    trunk, heads = nn.Embedding(5, 3, sparse=True), nn.ModuleList(nn.Linear(3, 1) for _ in range(3))
    main, *aux = (head(trunk(torch.tensor([1, 2]))).mean() for head in heads)
    Reweighter(ARML(), TASKS, trunk, every=1).backward(main, dict(zip(TASKS, aux, strict=True)))
    assert trunk.weight.grad.is_sparse
    assert not reused


def test_buffers_of_checkpointed_layers_move_as_in_the_usual_way(reused):
    class Checkpointed(nn.Sequential):
        def forward(self, x):
            return checkpoint(super().forward, x, use_reentrant=False)

    def make():
        torch.manual_seed(0)
        net = Net()
        net.trunk = Checkpointed(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4)).double()
        net.trunk.of_main = nn.Parameter(torch.zeros(4, dtype=torch.float64))
        return net

    net, twin = make(), make()
    Reweighter(ARML(), TASKS, net.trunk, every=1).backward(*net.losses())
    Reweighter(ARML(), TASKS, twin.trunk, every=1)(*twin.losses()).backward()
    assert_close(net.trunk[1].running_mean, twin.trunk[1].running_mean)
    assert_close(net.trunk[0].weight.grad, twin.trunk[0].weight.grad)
    assert not reused


def test_a_shared_part_in_the_middle_of_the_network(reused):
    net = Net()
    compare(net, Reweighter(ARML(), TASKS, list(net.trunk[3].parameters()), every=1))
    assert len(reused) == 3


def test_an_input_that_wants_a_gradient_gets_it(reused):
    net = Net()
    net.x.requires_grad_()
    twin = copy.deepcopy(net)
    Reweighter(ARML(), TASKS, net.trunk, every=1).backward(*net.losses())
    Reweighter(ARML(), TASKS, twin.trunk, every=1)(*twin.losses()).backward()
    assert_close(net.x.grad, twin.x.grad)
    assert len(reused) == 1


def count_convolution_passes(call):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        call()
    return sum(event.count for event in profiler.key_averages() if event.key == "aten::convolution_backward")


def test_one_pass_through_the_trunk_is_saved(reused):
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, net.trunk, every=1)
    layers = 2
    main, aux = net.losses()
    assert count_convolution_passes(lambda: reweighter.backward(main, aux)) == 3 * layers
    main, aux = net.losses()
    assert count_convolution_passes(lambda: reweighter(main, aux).backward()) == 4 * layers


def test_processes_that_train_together_use_the_usual_way(reused, tmp_path):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1)
    try:
        net = Net()
        wrapped = nn.parallel.DistributedDataParallel(net.trunk, find_unused_parameters=True)
        features = wrapped(net.x).mean((2, 3))
        losses = {name: F.mse_loss(head(features), net.y[name]) for name, head in net.heads.items()}
        Reweighter(ARML(), TASKS, net.trunk, every=1).backward(losses.pop("main"), losses)
    finally:
        dist.destroy_process_group()
    assert net.trunk[0].weight.grad is not None
    assert not reused
