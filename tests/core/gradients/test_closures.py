"""Engines whose products differ from those of the graph: noticed, for every task, and given up for good."""

import copy
import warnings

import pytest
import torch
from core.zoo import Opaque
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from arml import ARML, OLAUX, CosineSim, Reweighter
from arml.gradients import Auto, EngineFallbackWarning, alignment, double_backward, pairwise
from arml.gradients.audit import is_due
from arml.packing import unpack

SEEDS = range(10)


class Reverse(torch.autograd.Function):
    """Gradient reversal, as adversarial domain tasks use it."""

    @staticmethod
    def forward(x):
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad):
        return -grad

    @staticmethod
    def jvp(ctx, tangent):
        return tangent.view_as(tangent)


class Net:
    """A trunk with a main task, a plain task, a task that stops or turns gradients, and as many plain ones as asked."""

    def __init__(self, kind, seed, num_plain=1, scale=1.0):
        torch.manual_seed(seed)
        self.kind, self.scale = kind, scale
        self.trunk = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 16), nn.Tanh())
        self.heads = nn.Linear(16, 3 + num_plain)
        self.x, self.noise, self.y = torch.randn(32, 8), torch.randn(32, 8), torch.randn(32, 2 + num_plain)
        self.tasks = [*(f"plain {i}" for i in range(num_plain)), "special"]

    def twin(self):
        """The same network in float64."""
        other = copy.deepcopy(self)
        other.trunk, other.heads = other.trunk.double(), other.heads.double()
        other.x, other.noise, other.y = other.x.double(), other.noise.double(), other.y.double()
        return other

    def special(self):
        if self.kind == "reversal":
            return (self.heads(Reverse.apply(self.trunk(self.x)))[:, -1] - self.y[:, -1]).square().mean()
        student = self.heads(self.trunk(self.x + 0.3 * self.noise))[:, -2:]
        if self.kind == "no_grad":
            with torch.no_grad():
                target = self.heads(self.trunk(self.x))[:, -2:]
        else:
            target = self.heads(self.trunk(self.x))[:, -2:].detach()
        return F.mse_loss(student, target)

    def losses(self):
        outputs = self.heads(self.trunk(self.x))
        main, *plain = [(outputs[:, i] - self.y[:, i]).square().mean() for i in range(len(self.tasks))]
        return main, dict(zip(self.tasks, [*plain, self.scale * self.special()], strict=True))

    def shared(self, by):
        return self.trunk if by == "module" else list(self.trunk.parameters())


def exact(net, directions):
    """Products of the float64 twin, and the products of lengths they are measured in."""
    twin = net.twin()
    main, aux = twin.losses()
    rows = [
        torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(twin.trunk.parameters()), retain_graph=True)])
        for loss in (main, *aux.values())
    ]
    jacobian = torch.stack(rows)
    rs = directions.double() @ jacobian
    return rs @ jacobian.T, rs.norm(dim=1)[:, None] * jacobian.norm(dim=1)


def update(reweighter, net):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", EngineFallbackWarning)
        reweighter(closure=net.losses)
    return [warning.message for warning in caught]


def assert_products_are_those_of_the_graph(reweighter, net, directions, tolerance):
    expected, lengths = exact(net, directions)
    assert ((reweighter.signals.alignment - expected).abs() <= tolerance * lengths).all()


@pytest.mark.parametrize("num_plain", [1, 5])
@pytest.mark.parametrize(
    ("kind", "by"), [("no_grad", "module"), ("no_grad", "list"), ("detach", "list"), ("reversal", "module")]
)
@pytest.mark.parametrize("method", [CosineSim(), OLAUX()], ids=["CosineSim", "OLAUX"])
def test_closures_that_stop_gradients_give_the_products_of_the_graph(method, kind, by, num_plain):
    """The direction e_0 of these methods says nothing about auxiliary tasks."""
    for seed in SEEDS:
        net = Net(kind, seed, num_plain)
        reweighter = Reweighter(method, net.tasks, net.shared(by), every=1, convergence=None)
        reasons = [str(one) for one in update(reweighter, net)]
        main_only = torch.eye(2 + num_plain)[:1]
        assert_products_are_those_of_the_graph(reweighter, net, main_only, 1e-5)
        assert len(reasons) == (1 if by == "list" else 2), reasons
        assert all("stops gradients" in reason for reason in reasons)


@pytest.mark.parametrize("kind", ["no_grad", "reversal"])
def test_closures_that_stop_gradients_are_noticed_by_a_task_at_one_percent(kind):
    for seed in SEEDS:
        net = Net(kind, seed, num_plain=3, scale=0.01)
        for by in ("module", "list"):
            reweighter = Reweighter(OLAUX(), net.tasks, net.shared(by), every=1, convergence=None)
            assert update(reweighter, net)
            assert_products_are_those_of_the_graph(reweighter, net, torch.eye(5)[:1], 1e-5)


@pytest.mark.parametrize("by", ["module", "list"])
def test_closures_without_fault_pass_every_check(by):
    net = Net("no_grad", 0, num_plain=9)
    net.special = lambda: (net.heads(net.trunk(net.noise))[:, -1] - net.y[:, -1]).square().mean()
    reweighter = Reweighter(ARML(), net.tasks, net.shared(by), every=1, convergence=None)
    optimizer = torch.optim.SGD(net.trunk.parameters(), lr=0.05)
    for _ in range(70):
        assert update(reweighter, net) == []
        optimizer.zero_grad()
        sum(net.losses()[1].values()).backward()
        optimizer.step()


def test_after_resume_with_a_closure_no_product_changes_sign():
    """What was found out about engines is part of the state: a failed one is not tried again, nor warned about."""
    for seed in SEEDS:
        net = Net("no_grad", seed)
        make = lambda net=net: Reweighter(ARML(), net.tasks, net.trunk, every=1, convergence=None)  # noqa: E731
        first, resumed = make(), make()
        assert update(first, net)
        resumed.load_state_dict(first.state_dict())
        # A direction that hides the task from the sum over tasks, as weights that have reached 0 do.
        for reweighter in (first, resumed):
            reweighter._memory = reweighter._memory._replace(weights=torch.tensor([1.0, 2.0, 0.0], dtype=torch.float64))
            assert update(reweighter, net) == []
        assert torch.equal(resumed.signals.alignment, first.signals.alignment)
        assert_products_are_those_of_the_graph(resumed, net, torch.tensor([[1.0, -2.0, 0.0]]), 1e-5)


def test_a_state_without_findings_about_engines_still_loads():
    net = Net("no_grad", 0)
    reweighter = Reweighter(ARML(), net.tasks, net.trunk)
    state = unpack(reweighter.get_extra_state())
    state.pop("engines")
    reweighter.set_extra_state(state)
    assert update(reweighter, net)


def opaque_losses(trunk, heads, x, *, present=True, scale=1.0):
    features = trunk(x)
    plain = [heads(features.tanh())[:, i].square().mean() for i in range(4)]
    hidden = scale * heads(Opaque.apply(features))[:, 4].square().mean()
    return [*plain, hidden if present else torch.zeros(())]


@pytest.mark.parametrize("scale", [1.0, 0.01, 1e-6])
def test_double_backward_checks_a_task_once_it_appears(scale):
    """A task that is missing at the first update, and hides its second derivative from autograd."""
    main_only = torch.tensor([[1.0, 0, 0, 0, 0]])
    for seed in SEEDS:
        torch.manual_seed(seed)
        trunk, heads, x = nn.Linear(3, 6), nn.Linear(6, 5), torch.randn(8, 3)
        engine = Auto()
        for _ in range(4):  # the fifth update brings the task, and is no update that checks all the same
            alignment(opaque_losses(trunk, heads, x, present=False), trunk, main_only, engine=engine)
        assert not is_due(5)
        losses = opaque_losses(trunk, heads, x, scale=scale)
        with pytest.warns(EngineFallbackWarning, match="hides its second derivative"):
            found = alignment(losses, trunk, main_only, engine=engine)
        assert_close(found, alignment(losses, trunk, main_only, engine=pairwise))


def test_double_backward_is_checked_now_and_then():
    """A task that begins to hide its second derivative later."""
    torch.manual_seed(0)
    trunk, heads, x, main_only = nn.Linear(3, 6), nn.Linear(6, 5), torch.randn(8, 3), torch.eye(5)[:1]
    engine = Auto()
    for _ in range(9):
        alignment([head.square().mean() for head in heads(trunk(x)).T], trunk, main_only, engine=engine)
    with pytest.warns(EngineFallbackWarning, match="hides its second derivative"):
        alignment(opaque_losses(trunk, heads, x), trunk, main_only, engine=engine)
    assert [n for n in range(1, 201) if is_due(n)] == [1, 10, 50, 100, 150, 200]


def test_a_check_of_gradients_that_are_not_finite_is_repeated():
    torch.manual_seed(0)
    trunk, heads, x, main_only, engine = nn.Linear(3, 6), nn.Linear(6, 5), torch.randn(8, 3), torch.eye(5)[:1], Auto()
    losses = opaque_losses(trunk, heads, x)
    alignment([losses[0] * float("nan"), *losses[1:]], trunk, main_only, engine=engine)
    with pytest.warns(EngineFallbackWarning, match="hides its second derivative"):
        alignment(losses, trunk, main_only, engine=engine)


def test_checks_leave_the_random_state_alone_and_repeat_themselves():
    net = Net("no_grad", 0, num_plain=3)
    found = []
    for _ in range(2):
        engine = Auto()
        state = torch.get_rng_state()
        main, aux = net.losses()
        with warnings.catch_warnings(record=True):
            found.append(alignment([main, *aux.values()], net.trunk, torch.eye(5)[:1], engine=engine))
        assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(found[0], found[1])
    assert engine.state_dict() == {"updates": 1, "failed": [], "checked": {double_backward.__name__: [0, 1, 2, 3, 4]}}
