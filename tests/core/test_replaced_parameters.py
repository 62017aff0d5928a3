"""The shared parameters are those of the network as it is now, not as it was when the Reweighter was made."""

import copy
import pickle
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

from arml import ARML, CosineSim, GatedARML, GradNorm, Reweighter, alignment, norms, shared_parameters

TASKS = ["a", "b", "c"]
FORMS = {
    "module": lambda net: net.trunk,
    "names": lambda net: shared_parameters(net, "trunk"),
    "parameters": lambda net: net.trunk.parameters(),
}
every_method = pytest.mark.parametrize("method", [ARML(), GatedARML(), CosineSim(), GradNorm()], ids=repr)


class Net(nn.Module):
    def __init__(self, tasks=TASKS):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 4))
        self.heads = nn.ModuleDict({name: nn.Linear(4, 1) for name in ("main", *tasks)})
        self.double()
        self.x = torch.randn(16, 3, dtype=torch.float64)
        self.y = {name: torch.randn(16, 1, dtype=torch.float64) for name in self.heads}

    def losses(self, features=None):
        features = self.trunk(self.x) if features is None else features
        losses = {name: F.mse_loss(head(features), self.y[name]) for name, head in self.heads.items()}
        return losses.pop("main"), losses


class LowRank(nn.Module):
    """A frozen layer and a small change of it, as LoRA has them."""

    def __init__(self, layer):
        super().__init__()
        self.base = layer.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(2, layer.in_features, dtype=torch.float64))
        self.up = nn.Parameter(torch.randn(layer.out_features, 2, dtype=torch.float64))

    def forward(self, x):
        return self.base(x) + x @ self.down.T @ self.up.T


def assign(net):
    net.load_state_dict({name: value + 0.1 for name, value in net.state_dict().items()}, assign=True)


def assign_one_layer(net):
    net.trunk[0].load_state_dict({name: value + 0.1 for name, value in net.trunk[0].state_dict().items()}, assign=True)


def add_weight_norm(net):
    weight_norm(net.trunk[2])


def add_low_rank(net):
    net.trunk[0] = LowRank(net.trunk[0])


def append_a_layer(net):
    net.trunk.append(nn.Linear(4, 4, dtype=torch.float64))


def swap_a_layer(net):
    net.trunk[2] = nn.Linear(6, 4, dtype=torch.float64)


REPLACE = [assign, assign_one_layer, add_weight_norm, add_low_rank, append_a_layer, swap_a_layer]


def catch(call):
    """The texts of the warnings that ``call`` gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("form", ["module", "names"])
@pytest.mark.parametrize("replace", REPLACE)
def test_replaced_parameters_are_measured(replace, form):
    """As a Reweighter would measure that was made after the replacement."""
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, FORMS[form](net), every=1)
    reweighter(*net.losses())
    direction = reweighter.method.directions(reweighter._memory)
    replace(net)
    main, aux = net.losses()
    assert catch(lambda: reweighter(main, aux)) == []
    expected = alignment([main, *aux.values()], net.trunk, direction)
    assert_close(reweighter.signals.alignment, expected)


@pytest.mark.parametrize("replace", [assign_one_layer, add_weight_norm, swap_a_layer])
def test_replaced_parameters_that_were_given_themselves_are_noticed_once(replace):
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, net.trunk.parameters(), every=1)
    assert catch(lambda: reweighter(*net.losses())) == []
    replace(net)
    (text,) = catch(lambda: reweighter(*net.losses()))
    assert "no longer depend on" in text
    assert "pass the module" in text
    assert catch(lambda: reweighter(*net.losses())) == []


def test_parameters_that_were_all_replaced_are_an_error():
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, net.trunk.parameters(), every=1)
    reweighter(*net.losses())
    assign(net)
    with pytest.raises(ValueError, match=r"No loss depends on the shared parameters .* replaced .* pass the module"):
        reweighter(*net.losses())


@pytest.mark.parametrize("form", FORMS)
def test_freezing_and_unfreezing_is_no_replacement(form):
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, FORMS[form](net), every=1)
    for frozen in (False, True, False):
        net.trunk[0].requires_grad_(not frozen)
        assert catch(lambda: reweighter(*net.losses())) == []
    with_all = reweighter.signals.alignment
    net.trunk[2].requires_grad_(False)
    assert catch(lambda: reweighter(*net.losses())) == []
    assert not torch.equal(with_all, reweighter.signals.alignment)


def test_a_missing_task_is_no_replacement():
    """Parameters that only one task uses have no gradient in a batch without it."""
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, [*net.trunk.parameters(), *net.heads["b"].parameters()], every=1)
    for missing in ("none", "b", "a", "b", "none"):
        main, aux = net.losses()
        aux.pop(missing, None)
        assert catch(lambda main=main, aux=aux: reweighter(main, aux)) == []


def test_gradnorm_finds_its_layer_after_a_replacement():
    net = Net()
    reweighter = Reweighter(GradNorm(layer="2"), TASKS, net.trunk, every=1)
    reweighter(*net.losses())
    swap_a_layer(net)
    main, aux = net.losses()
    reweighter(main, aux)
    assert_close(reweighter.signals.norms, norms([main, *aux.values()], net.trunk[2]))


def test_all_given_parameters_frozen_later_are_reported_once():
    """Adapters freeze the network around them; as new parameters they are not among the given ones."""
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, net.trunk.parameters(), every=1)
    reweighter(*net.losses())
    net.trunk[0], net.trunk[2] = LowRank(net.trunk[0]), LowRank(net.trunk[2])
    (text,) = catch(lambda: reweighter(*net.losses()))
    assert "are all frozen now" in text
    assert "pass the module" in text
    assert catch(lambda: reweighter(*net.losses())) == []


@pytest.mark.parametrize("form", ["module", "names"])
def test_copies_and_pickles_read_their_own_network(form):
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, FORMS[form](net), every=1)
    for make in (copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))):
        other_net, other = make((net, reweighter))
        swap_a_layer(other_net)
        main, aux = other_net.losses()
        direction = other.method.directions(other._memory)
        other(main, aux)
        assert_close(other.signals.alignment, alignment([main, *aux.values()], other_net.trunk, direction))


def test_shared_parameters_is_a_dictionary_that_can_be_changed():
    net = Net()
    chosen = shared_parameters(net, "trunk")
    assert isinstance(chosen, dict)
    assert repr(chosen) == repr({f"trunk.{name}": p for name, p in net.trunk.named_parameters()})
    del chosen["trunk.0.bias"]
    reweighter = Reweighter(ARML(), TASKS, chosen)
    assert list(reweighter._observer.read_shared()) == ["trunk.0.weight", "trunk.2.weight", "trunk.2.bias"]


def test_names_that_are_gone_are_an_error():
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, shared_parameters(net, "trunk.2"), every=1)
    reweighter(*net.losses())
    del net.trunk[2]
    with pytest.raises(ValueError, match=r"No parameter of Net is named 'trunk.2' or lies below it"):
        reweighter(*net.losses(F.pad(net.trunk(net.x), (0, -2))))


@pytest.mark.parametrize("tasks", [TASKS[:2], TASKS], ids=["pairwise", "double_backward"])
@pytest.mark.parametrize("outside", ["before", "after"])
def test_reentrant_checkpointing_is_an_error_that_says_what_to_do(tasks, outside):
    """Its parameters are not in the graph: they would count as zero, or torch would raise."""
    net = Net(tasks)
    reweighter = Reweighter(ARML(), tasks, net.trunk, every=1)

    def features(*, reentrant):
        x = net.x.requires_grad_()
        if outside == "after":
            return net.trunk[1:](checkpoint(net.trunk[0], x, use_reentrant=reentrant))
        return checkpoint(net.trunk[1:], net.trunk[0](x), use_reentrant=reentrant)

    assert catch(lambda: reweighter(*net.losses(features(reentrant=False)))) == []
    with pytest.raises(ValueError, match="use_reentrant=False"):
        reweighter(*net.losses(features(reentrant=True)))
    with pytest.raises(ValueError, match="use_reentrant=False"):
        Reweighter(ARML(), tasks, net.trunk)(*net.losses(features(reentrant=True)))


def test_reentrant_checkpointing_before_the_shared_part_is_fine():
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, net.trunk[2])
    features = checkpoint(net.trunk[:2], net.x.requires_grad_(), use_reentrant=True)
    assert catch(lambda: reweighter(*net.losses(net.trunk[2](features)))) == []


@every_method
@pytest.mark.parametrize("task", ["main", "b"])
def test_a_loss_that_does_not_touch_the_shared_parameters_is_reported_once(method, task):
    net = Net()
    reweighter = Reweighter(method, TASKS, net.trunk, every=1)
    other = copy.deepcopy(net)

    def losses():
        (main, aux), (other_main, other_aux) = net.losses(), other.losses()
        return (other_main, aux) if task == "main" else (main, aux | {task: other_aux[task]})

    (text,) = catch(lambda: reweighter(*losses()))
    assert f"The loss of {task!r} does not depend on the shared parameters" in text
    assert catch(lambda: reweighter(*losses())) == []


def test_an_untouched_task_is_reported_when_it_first_appears():
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, net.trunk, every=1)
    main, aux = net.losses()
    assert catch(lambda: reweighter(main, {"a": aux["a"]})) == []
    main, aux = net.losses()
    aux["b"] = net.heads["b"].weight.sum()
    (text,) = catch(lambda: reweighter(main, aux))
    assert "'b' does not depend" in text


def test_mostly_untouched_parameters_are_reported_once():
    net = Net()
    net.trunk.decoder = nn.Linear(100, 100)
    net.trunk.forward = lambda x: net.trunk[2](net.trunk[1](net.trunk[0](x)))
    reweighter = Reweighter(ARML(), TASKS, net.trunk, every=1)
    (text,) = catch(lambda: reweighter(*net.losses()))
    assert "2 of the 6 shared parameters" in text
    assert "decoder.weight" in text
    assert catch(lambda: reweighter(*net.losses())) == []


def test_a_zero_product_is_no_reason_for_a_warning():
    """Losses at their minimum have no gradient, and dead units pass none on."""
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, net.trunk, every=1)
    main, aux = net.losses()
    aux["b"] = (net.trunk(net.x) - 100).clamp(min=0).sum()
    assert catch(lambda: reweighter(main, aux)) == []


def test_later_updates_walk_through_no_graph(monkeypatch):
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, net.trunk, every=1)
    reweighter(*net.losses())
    monkeypatch.setattr("arml.connection.leaves", pytest.fail)
    monkeypatch.setattr("arml.connection.has_node", pytest.fail)
    for _ in range(3):
        reweighter(*net.losses())
