"""float16, autocast, sparse gradients, quantised and complex parameters, checkpointed BatchNorm."""

import copy
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

from arml import ARML, CosineSim, GradNorm, Reweighter, TorchJD

TASKS = ["a", "b", "c"]


class Net(nn.Module):
    def __init__(self, trunk=None, tasks=TASKS, dtype=torch.float32):
        super().__init__()
        self.trunk = trunk or nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4))
        self.heads = nn.ModuleDict({name: nn.Linear(4, 1) for name in ("main", *tasks)})
        self.to(dtype)
        self.x = torch.randn(16, 3, dtype=dtype)
        self.y = {name: torch.randn(16, 1, dtype=dtype) for name in self.heads}

    def losses(self, scale=1.0):
        features = self.trunk(self.x)
        losses = {name: scale * F.mse_loss(head(features), self.y[name]) for name, head in self.heads.items()}
        return losses.pop("main"), losses


def catch(call):
    """The texts of the warnings that ``call`` gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in caught]


def scaler(scale):
    return torch.amp.GradScaler("cpu", init_scale=scale)


@pytest.mark.parametrize("loss_scale", [2.0**16, scaler(2.0**16)], ids=["number", "GradScaler"])
@pytest.mark.parametrize("closure", [False, True], ids=["graph", "closure"])
def test_float16_does_not_underflow_with_a_loss_scale(loss_scale, closure):
    """Losses times 1e-5: without a scale all gradients are exactly zero."""
    net = Net()
    low = Reweighter(ARML(), TASKS, net.trunk, loss_scale=loss_scale)
    exact = Reweighter(ARML(), TASKS, net.trunk)
    exact(*net.losses(1e-5))
    with torch.autocast("cpu", dtype=torch.float16):
        call = (lambda: low(closure=lambda: net.losses(1e-5))) if closure else lambda: low(*net.losses(1e-5))
        assert catch(call) == []
    assert_close(low.signals.alignment, exact.signals.alignment, rtol=0.02, atol=2e-13)


def test_float16_without_a_loss_scale_is_reported_once():
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, net.trunk, every=1)
    for expected in (1, 0):
        with torch.autocast("cpu", dtype=torch.float16):
            texts = catch(lambda: reweighter(*net.losses()))
        assert len(texts) == expected
        assert all("float16" in text and "loss_scale=scaler" in text for text in texts)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert catch(lambda: Reweighter(ARML(), TASKS, net.trunk)(*net.losses())) == []


def test_products_that_vanish_at_too_small_a_loss_scale_are_reported_once():
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, net.trunk, every=1, loss_scale=1.0)
    with torch.autocast("cpu", dtype=torch.float16):
        (text,) = catch(lambda: reweighter(*net.losses(1e-7)))
        assert "'main', 'a', 'b', 'c'" in text
        assert "larger `loss_scale`" in text
        assert catch(lambda: reweighter(*net.losses(1e-7))) == []


def test_too_large_a_loss_scale_is_reported_once_and_leaves_the_weights():
    net = Net()
    with torch.autocast("cpu", dtype=torch.float16):
        fixed = Reweighter(ARML(), TASKS, net.trunk, every=1, loss_scale=2.0**30)
        (text,) = catch(lambda: fixed(*net.losses()))
        assert "smaller `loss_scale`" in text
        assert catch(lambda: fixed(*net.losses())) == []
        # A GradScaler lowers its scale by itself, after the caller's own backward pass.
        dynamic = Reweighter(ARML(), TASKS, net.trunk, every=1, loss_scale=scaler(2.0**30))
        assert catch(lambda: dynamic(*net.losses())) == []
    assert set(fixed.weights.values()) == set(dynamic.weights.values()) == {1.0}


@pytest.mark.parametrize("method", [ARML(), CosineSim(), GradNorm()], ids=repr)
@pytest.mark.parametrize("closure", [False, True], ids=["graph", "closure"])
def test_a_loss_scale_changes_no_signal(method, closure):
    net = Net(dtype=torch.float64)
    plain, scaled = (Reweighter(method, TASKS, net.trunk, aux_scale=0.3, loss_scale=s) for s in (None, 2.0**16))
    for reweighter in (plain, scaled):
        reweighter(closure=net.losses) if closure else reweighter(*net.losses())
    assert_close(plain.weights, scaled.weights)
    for a, b in zip(plain.signals, scaled.signals, strict=True):
        assert (a is b is None) or assert_close(a, b) is None


def test_a_loss_scale_changes_no_gram_matrix():
    aggregation = pytest.importorskip("torchjd.aggregation")
    net = Net(dtype=torch.float64)
    method = TorchJD(aggregation.UPGradWeighting())
    plain, scaled = (Reweighter(method, TASKS, net.trunk, loss_scale=s) for s in (None, 2.0**16))
    for reweighter in (plain, scaled):
        reweighter(*net.losses())
    assert_close(plain.signals.gram, scaled.signals.gram)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("inf"), "auto"])
def test_a_loss_scale_is_a_positive_number_or_a_scaler(bad):
    with pytest.raises((ValueError, TypeError), match="`loss_scale` should be"):
        Reweighter(ARML(), TASKS, Net().trunk, loss_scale=bad)


@pytest.mark.parametrize("inside", [False, True], ids=["around", "inside"])
@pytest.mark.parametrize("form", ["module", "parameters"])
def test_a_closure_is_replayed_inside_its_autocast(form, inside):
    """Dual numbers see the bfloat16 that the losses were made in. Central differences would drown in its rounding."""
    net = Net()
    seen = []

    def losses():
        seen.append(net.trunk(net.x).dtype)
        return net.losses()

    def closure():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=inside or torch.is_autocast_enabled("cpu")):
            return losses()

    shared = net.trunk if form == "module" else net.trunk.parameters()
    reweighter = Reweighter(ARML(), TASKS, shared)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=not inside):
        with warnings.catch_warnings():  # differences that drown are noticed, and the graph takes over
            warnings.simplefilter("ignore")
            reweighter(closure=closure)
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            after = net.trunk(net.x)
    assert len(seen) >= (2 if form == "module" else 1)
    assert set(seen) == {torch.bfloat16}
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert_close(after, net.trunk(net.x), rtol=0, atol=0)  # no shifted weight stays in autocast's cache
    exact = Reweighter(ARML(), TASKS, net.trunk)
    exact(*net.losses())
    assert_close(reweighter.signals.alignment, exact.signals.alignment, rtol=0.1, atol=0.02)


@pytest.mark.parametrize("tasks", [["a"], TASKS], ids=["pairwise", "double_backward"])
@pytest.mark.parametrize("closure", [False, True], ids=["graph", "closure"])
def test_sparse_embedding(tasks, closure):
    """Embedding(sparse=True) gives the products of a dense one; where torch lacks a second derivative, it says so."""
    dense, sparse = nn.Embedding(10, 4), nn.Embedding(10, 4, sparse=True)
    sparse.load_state_dict(dense.state_dict())
    net = Net(nn.Sequential(), tasks)
    found = []
    for trunk in (dense, sparse):
        net.trunk, net.x = trunk, torch.arange(16) % 7
        reweighter = Reweighter(ARML(), tasks, trunk)
        texts = catch(lambda r=reweighter: r(closure=net.losses) if closure else r(*net.losses()))
        assert all("Another engine is used" in text for text in texts)
        found.append(reweighter.signals.alignment)
    assert_close(found[0], found[1])


def test_frozen_uint8_parameters_are_left_out():
    """Quantised layers keep their weights in them (QLoRA)."""
    net = Net()
    expected = Reweighter(ARML(), TASKS, net.trunk)
    expected(*net.losses())
    net.trunk.register_parameter("quantised", nn.Parameter(torch.zeros(4, dtype=torch.uint8), requires_grad=False))
    for shared in (net.trunk, list(net.trunk.parameters())):
        reweighter = Reweighter(ARML(), TASKS, shared)
        reweighter(*net.losses())
        assert reweighter.weights == expected.weights
    with pytest.raises(TypeError, match="computed or integer tensor"):
        Reweighter(ARML(), TASKS, [torch.zeros(3, dtype=torch.int64)])


def test_complex_parameters_are_an_error_that_says_what_to_do():
    net = Net()
    net.trunk.register_parameter("phase", nn.Parameter(torch.zeros(4, dtype=torch.complex64)))
    with pytest.raises(TypeError, match=r"'phase' of complex numbers \(torch.complex64\).*view_as_complex"):
        Reweighter(ARML(), TASKS, net.trunk)
    net.trunk.phase.requires_grad_(False)
    Reweighter(ARML(), TASKS, net.trunk)(*net.losses())


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 4))

    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=False)


@pytest.mark.parametrize("tasks", [["a"], TASKS], ids=["pairwise", "double_backward"])
@pytest.mark.parametrize("form", ["module", "parameters"])
def test_checkpointed_batchnorm_moves_as_without_an_update(tasks, form):
    """torch moves its statistics in the forward pass and in the caller's backward; an update adds nothing."""
    net = Net(Checkpointed(), tasks)
    twin = copy.deepcopy(net)
    shared = net.trunk if form == "module" else net.trunk.parameters()
    reweighter = Reweighter(ARML(), tasks, shared, every=1)
    for _ in range(3):
        loss = reweighter(*net.losses())
        forward = copy.deepcopy(twin)
        forward.losses()
        assert_close(net.trunk.inner[1].state_dict(), forward.trunk.inner[1].state_dict())
        main, aux = twin.losses()
        loss.backward()
        (main + sum(aux.values())).backward()
        assert_close(net.trunk.state_dict(), twin.trunk.state_dict())


def test_a_float16_loop_with_a_scaler_learns_the_weights_of_float32():
    """The scale is too large at first: that update is left out, as the scaler leaves out its step."""
    weights = {}
    for dtype in (torch.float32, torch.float16):
        torch.manual_seed(0)
        net = Net()
        grad_scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40, backoff_factor=2.0**-8)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
        reweighter = Reweighter(ARML(scale_free=True), TASKS, net.trunk, every=1, loss_scale=grad_scaler)
        for _ in range(12):
            with torch.autocast("cpu", dtype=dtype, enabled=dtype == torch.float16):
                losses = net.losses(1e-5)
            optimizer.zero_grad()
            grad_scaler.scale(reweighter(*losses)).backward()
            grad_scaler.step(optimizer)
            grad_scaler.update()
        weights[dtype] = torch.tensor(list(reweighter.weights.values()))
    left_out = 1
    moved = (weights[torch.float32] - 1).abs().max()
    assert moved > 0.01
    assert (weights[torch.float16] - weights[torch.float32]).abs().max() < moved * (left_out + 1) / 12
