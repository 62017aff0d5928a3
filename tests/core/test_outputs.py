"""Which auxiliary tasks train the outputs of the main task."""

import copy

import pytest
import torch
from torch import nn

from arml import ARML, Reweighter
from arml.gradients import pairwise
from arml.gradients.graph import parameters_behind

TASKS = ["rival", "more", "own", "deep"]
COMPETES = [True, True, False, False]


class Net(nn.Module):
    """``rival`` goes through the main head, ``more`` through a layer behind it, too; ``own`` and ``deep`` do not."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.trunk = nn.Linear(3, 4)
        self.head, self.own, self.deep, self.more = nn.Linear(4, 2), nn.Linear(4, 1), nn.Linear(4, 1), nn.Linear(2, 1)

    def forward(self, x):
        features = self.trunk(x)
        output = self.head(features)
        return {
            "main": output,
            "rival": 2 * output,
            "more": self.more(output),
            "own": self.own(features),
            "deep": self.deep(features.tanh()),
        }

    def losses(self, x=None):
        outputs = self(torch.randn(5, 3) if x is None else x)
        losses = {name: output.square().mean() for name, output in outputs.items()}
        return losses.pop("main"), losses


def make(net, **settings):
    return Reweighter(tasks=TASKS, shared=net.trunk, **settings)


def found(reweighter):
    return reweighter.signals.same_outputs.tolist()


def test_the_graph_shows_it():
    net = Net()
    reweighter = make(net)
    reweighter(*net.losses())
    assert found(reweighter) == COMPETES
    weights = reweighter.weights
    assert (weights["rival"], weights["more"]) == (0, 0)
    assert weights["own"] + weights["deep"] == pytest.approx(2)


def test_a_closure_and_a_held_out_loss_show_it_too():
    net = Net()
    reweighter = make(net)
    reweighter(closure=net.losses)
    assert found(reweighter) == COMPETES
    reweighter = make(net)
    main, aux = net.losses()
    reweighter(main, aux, steer=net.losses()[0])
    assert found(reweighter) == COMPETES


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning")  # torch's own
def test_a_network_that_is_compiled_as_a_whole_shows_it_too():
    """Behind every loss lie the heads of all tasks, but only its own has a gradient."""
    net = Net()
    net.forward = torch.compile(net.forward, backend="aot_eager")
    main, aux = net.losses()
    assert len(parameters_behind(main)) == len(list(net.parameters()))
    reweighter = make(net, engine=pairwise)
    reweighter(main, aux)
    assert found(reweighter) == COMPETES


def test_inputs_with_a_gradient_are_no_parameters():
    """As for a gradient penalty; other tasks have other inputs."""
    net = Net()
    reweighter = make(net)
    main, _ = net.losses(torch.randn(5, 3, requires_grad=True))
    reweighter(main, net.losses()[1])
    assert found(reweighter) == COMPETES


def test_plain_tensors_may_be_all_that_is_trained():
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    assert {id(leaf) for leaf in parameters_behind((2 * x * y).sum())} == {id(x), id(y)}


def test_a_main_task_without_parameters_of_its_own_has_rivals_only():
    net = Net()
    net.head.requires_grad_(False)
    reweighter = make(net)
    reweighter(*net.losses())
    assert found(reweighter) == [True] * 4


def test_frozen_heads_of_other_tasks_change_nothing():
    net = Net()
    for part in (net.own, net.more):
        part.requires_grad_(False)
    reweighter = make(net)
    reweighter(*net.losses())
    assert found(reweighter) == COMPETES


@pytest.mark.parametrize("with_main", [True, False])
def test_tasks_that_take_turns_are_all_found(with_main):
    """The round ends with the last task, but all have been looked at."""
    net = Net()
    reweighter = make(net)
    for i, task in enumerate(TASKS):
        main, aux = net.losses()
        reweighter(main if with_main or i == 0 else None, {task: aux[task]})
    assert found(reweighter) == COMPETES


def test_a_task_counts_as_a_rival_until_it_shows_up():
    net = Net()
    reweighter = make(net, every=1)
    for _ in range(25):
        main, aux = net.losses()
        reweighter(main, {"own": aux["own"], "deep": aux["deep"]})
    assert found(reweighter) == [True, True, False, False]
    assert reweighter.weights["rival"] == reweighter.weights["more"] == 0.25  # as at the start
    reweighter(*net.losses())
    assert found(reweighter) == COMPETES


def test_a_resumed_run_knows_it_before_it_meets_all_tasks():
    net = Net()
    reweighter = make(net, every=1)
    reweighter(*net.losses())
    twin = copy.deepcopy(net)
    resumed = Reweighter(tasks=TASKS[::-1], shared=twin.trunk, every=1)
    resumed.load_state_dict(reweighter.state_dict())
    assert resumed._observer.outputs.same().tolist() == COMPETES[::-1]
    for _ in range(30):
        main, aux = twin.losses()
        resumed(main, {"rival": aux["rival"]})
    assert found(resumed) == COMPETES[::-1]


def test_replaced_parameters_do_not_matter():
    net = Net()
    reweighter = make(net, every=1)
    reweighter(*net.losses())
    net.load_state_dict({name: p.clone() for name, p in net.state_dict().items()}, assign=True)
    net.head, net.own = nn.Linear(4, 2), nn.Linear(4, 1)
    reweighter(*net.losses())
    assert found(reweighter) == COMPETES


def test_other_methods_do_not_look():
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, net.trunk)
    reweighter(*net.losses())
    assert reweighter.signals.same_outputs is None


def refuse(*_):
    raise AssertionError("a gradient was measured")


def test_where_all_tasks_compete_no_other_gradient_is_measured():
    net, (rival, more, *_) = Net(), TASKS
    reweighter = Reweighter(tasks=[rival, more], shared=net.trunk, engine=refuse)
    main, aux = net.losses()
    reweighter(main, {name: aux[name] for name in (rival, more)})
    assert reweighter.signals.alignment is None
    assert reweighter.signals.transfer[1].all()
    with pytest.raises(AssertionError, match="a gradient was measured"):
        make(net, engine=refuse)(main, aux)
