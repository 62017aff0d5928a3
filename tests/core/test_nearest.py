"""Gradients are measured on the shared parameters next to the losses, where a method says that this is enough."""

import copy

import pytest
import torch
from core.test_reweighter import Net as PlainNet
from torch import nn
from torch.testing import assert_close

from arml import Agreement, Reweighter
from arml.gradients import CentralDifferences, DualNumbers
from arml.gradients.measure import alignment
from arml.nearest import Nearest, next_two

TASKS = ["a", "b", "early"]


class Net(nn.Module):
    """A trunk of three layers with BatchNorm; ``early`` leaves it after the second one."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        layers = [nn.Sequential(nn.Linear(width, 5, bias=False), nn.BatchNorm1d(5), nn.Tanh()) for width in (3, 5, 5)]
        self.trunk = nn.ModuleList(layers)
        self.heads = nn.ModuleDict({name: nn.Linear(5, 1) for name in ("main", *TASKS)})
        self.double()
        self.x = torch.randn(16, 3, dtype=torch.float64)
        self.passes = 0

    def losses(self, names=("main", *TASKS)):
        first = self.trunk[0](self.x)
        if first.requires_grad:
            first.register_hook(self._count)
        second = self.trunk[1](first)
        features = {"early": second, **dict.fromkeys(("main", "a", "b"), self.trunk[2](second))}
        losses = {name: (self.heads[name](features[name]) - 1).square().mean() for name in names}
        return losses.pop("main", None), losses

    def _count(self, gradient):
        self.passes += 1


def names_in(reweighter):
    shared = reweighter.read_shared()
    return {name for name, p in shared.items() if any(p is one for one in reweighter._observer.measured.values())}


LAST, SECOND = ({f"{i}.{name}" for name in ("0.weight", "1.weight", "1.bias")} for i in (2, 1))


def test_it_is_the_last_layer_and_that_of_a_task_that_leaves_earlier():
    net = Net()
    reweighter = Reweighter(None, TASKS, net.trunk)
    reweighter(*net.losses())
    assert names_in(reweighter) == LAST | SECOND


def test_products_are_those_on_the_last_layer():
    net = PlainNet()
    reweighter = Reweighter(Agreement(), list("abcd"), net.trunk, units=False)
    main, aux = net.losses()
    reweighter(main, aux)
    expected = alignment([main, *aux.values()], net.trunk[-1], torch.eye(1, 5, dtype=torch.float64))
    assert_close(reweighter.signals.alignment, expected)


@pytest.mark.parametrize("tasks", [["a"], TASKS[:2], ["a", "b", "c"]])
def test_no_backward_pass_goes_through_the_network(tasks):
    net = Net()
    net.heads["c"] = copy.deepcopy(net.heads["b"])
    reweighter = Reweighter(None, tasks, net.trunk)
    for _ in range(3):
        first = net.trunk[0](net.x)
        first.register_hook(net._count)
        features = net.trunk[2](net.trunk[1](first))
        losses = {name: (net.heads[name](features) - 1).square().mean() for name in ("main", *tasks)}
        loss = reweighter(losses.pop("main"), losses)
        assert reweighter.signals is not None
        assert net.passes == 0
    loss.backward()
    assert net.passes == 1


def test_a_closure_is_not_repeated_where_the_graph_is_cheaper():
    net, calls = Net(), []

    def closure():
        calls.append(1)
        return net.losses()

    reweighter = Reweighter(None, TASKS, net.trunk)
    for _ in range(4):
        reweighter(closure=closure).backward()
    assert len(calls) == 4
    engines = [DualNumbers.__name__, CentralDifferences.__name__]
    assert not any(name in str(reweighter._observer.auto.state_dict()) for name in engines)


def test_tasks_that_come_later_are_looked_at_then():
    net = Net()
    reweighter = Reweighter(None, TASKS, net.trunk, every=1)
    reweighter(*net.losses(("main", "a")))
    assert names_in(reweighter) == LAST
    reweighter(*net.losses(("b", "early")))
    assert names_in(reweighter) == LAST | SECOND


def test_a_layer_that_was_frozen_is_not_measured_any_more():
    net = Net()
    reweighter = Reweighter(None, TASKS[:2], net.trunk, every=1)
    reweighter(*net.losses(("main", "a", "b")))
    assert names_in(reweighter) == LAST
    net.trunk[2].requires_grad_(False)
    reweighter(*net.losses(("main", "a", "b")))
    assert names_in(reweighter) == SECOND


def test_a_round_of_batches_goes_on_exactly_after_a_checkpoint():
    """Each batch holds one task; the state is saved in the middle of a round."""
    order = [("main", "a"), ("b",), ("main",), ("early",), ("main", "b"), ("a", "early")] * 4

    def run(net, reweighter, batches):
        for names in batches:
            main, aux = net.losses(names)
            reweighter(main, aux)

    net = Net()
    whole, first, second = (Reweighter(None, TASKS, net.trunk, every=1) for _ in range(3))
    run(net, whole, order)
    run(net, first, order[:9])
    second.load_state_dict(first.state_dict())
    run(net, second, order[9:])
    assert whole.weights == second.weights
    assert whole.signals is not None


def test_lengths_for_units_go_no_further_than_two_parameters():
    net = Net()
    main, aux = net.losses()
    near = Nearest(4, next_two)
    shared = dict(net.trunk.named_parameters())
    assert near.look_at([main, *aux.values()], shared, torch.device("cpu"))
    assert set(near.choose(shared)) == {"2.1.weight", "2.1.bias", "1.1.weight", "1.1.bias"}
    assert not near.look_at([main, *aux.values()], shared, torch.device("cpu"))
