"""A trunk that torch.compile has turned into machine code: what does not work on it is noticed once and replaced."""

import os
import shutil
import sysconfig
import warnings
from pathlib import Path

import pytest
import torch
from core.zoo import plain
from torch import nn
from torch._dynamo.utils import counters
from torch.testing import assert_close

from arml import ARML, GradNorm, Reweighter
from arml.gradients import CentralDifferences, alignment, compiled, gram, norms, pairwise
from arml.gradients.compiled import check_repeatable

COMPILER = os.environ.get("CXX", "g++")
HEADERS = Path(sysconfig.get_path("include")) / "Python.h"
STEPS = 4
to_machine_code = pytest.mark.slow
pytestmark = [
    pytest.mark.skipif(
        shutil.which(COMPILER) is None, reason=f"torch.compile needs a C++ compiler; no {COMPILER} here"
    ),
    pytest.mark.skipif(not HEADERS.exists(), reason=f"torch.compile needs the headers of Python; no {HEADERS} here"),
    pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning"),  # torch's own
]


@pytest.fixture(autouse=True)
def _nothing_compiled_before(tmp_path, monkeypatch):
    """Nor by an earlier program: torch keeps compiled graphs in files, and their first use decides what they allow."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    torch._dynamo.reset()
    counters.clear()
    alone = {"fx_graph_cache": False, "compile_threads": 1}  # no threads that outlive a test and change warnings
    with torch._inductor.config.patch(alone), torch._functorch.config.patch(enable_autograd_cache=False):
        yield
    torch._dynamo.reset()


class Training:
    """A small network with K auxiliary tasks, updated and trained at every step."""

    def __init__(self, num_aux, *, compiled):
        torch.manual_seed(0)
        self.trunk = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 8), nn.Tanh())
        self.heads = nn.ModuleList(nn.Linear(8, 1) for _ in range(1 + num_aux))
        self.x, self.y = torch.randn(32, 6), torch.randn(1 + num_aux, 32, 1)
        self.tasks = [f"task {k}" for k in range(1, 1 + num_aux)]
        self.reweighter = Reweighter(ARML(lr=0.5), self.tasks, self.trunk, every=1, convergence=None)
        self.optimizer = torch.optim.SGD([*self.trunk.parameters(), *self.heads.parameters()], lr=0.1)
        self.features = torch.compile(self.trunk) if compiled else self.trunk
        self.warnings, self.compilations = [], []
        """Of every step: its warnings, and the graphs compiled so far."""

    def losses(self):
        features = self.features(self.x)
        main, *aux = [(head(features) - y).square().mean() for head, y in zip(self.heads, self.y, strict=True)]
        return main, dict(zip(self.tasks, aux, strict=True))

    def step(self, *, closure):
        with warnings.catch_warnings(record=True, category=UserWarning) as caught:
            warnings.simplefilter("always", UserWarning)
            loss = self.reweighter(closure=self.losses) if closure else self.reweighter(*self.losses())
        self.descend(loss)
        self.warnings.append([str(warning.message) for warning in caught])
        self.compilations.append(counters["stats"]["unique_graphs"])

    def descend(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def train(num_aux, *, compiled, closure, plain_steps=0):
    training = Training(num_aux, compiled=compiled)
    for _ in range(plain_steps):
        training.descend(training.losses()[0])
    for _ in range(STEPS):
        training.step(closure=closure)
    return training


def assert_trained_alike(compiled, eager, tolerance):
    """The same weights, the same network, and weights that were learned at all."""
    assert min(eager.reweighter.weights.values()) < 0.9
    near = {"rtol": tolerance, "atol": tolerance}
    assert_close(compiled.reweighter.weights, eager.reweighter.weights, **near)
    assert_close(compiled.trunk.state_dict(), eager.trunk.state_dict(), **near)


@pytest.mark.long
@to_machine_code
def test_two_tasks_need_first_derivatives_only():
    eager, compiled = (train(2, compiled=c, closure=False) for c in (False, True))
    assert_trained_alike(compiled, eager, 1e-5)
    assert compiled.warnings == [[]] * STEPS
    assert compiled.compilations == [1] * STEPS


@to_machine_code
def test_without_second_derivatives_tasks_are_taken_one_by_one():
    eager, compiled = (train(5, compiled=c, closure=False) for c in (False, True))
    assert_trained_alike(compiled, eager, 1e-5)
    (first,), *later = compiled.warnings
    assert "double_backward does not work here and is not tried again" in first
    assert later == [[]] * (STEPS - 1)
    assert compiled.compilations == [1] * STEPS


@to_machine_code
def test_without_dual_numbers_a_closure_is_taken_by_differences():
    eager, compiled = (train(5, compiled=c, closure=True) for c in (False, True))
    assert_trained_alike(compiled, eager, 1e-3)
    (first,), *later = compiled.warnings
    assert "DualNumbers does not work here and is not tried again" in first
    assert later == [[]] * (STEPS - 1), "and CentralDifferences do"
    assert len(set(compiled.compilations)) == 1, "later steps compile nothing"


@to_machine_code
def test_code_compiled_at_a_step_without_update_says_what_to_set():
    """Its one backward pass overwrites what a second one would need: an error, not wrong weights."""
    with pytest.raises(ValueError, match=r"allows one backward pass only.*donated_buffer = False"):
        train(2, compiled=True, closure=False, plain_steps=1)


@to_machine_code
@pytest.mark.parametrize(("closure", "tolerance"), [(False, 1e-5), (True, 1e-3)])
def test_updates_may_begin_later_if_that_was_set_before(closure, tolerance):
    with torch._functorch.config.patch(donated_buffer=False):
        eager, compiled = (train(2, compiled=c, closure=closure, plain_steps=1) for c in (False, True))
    assert_trained_alike(compiled, eager, tolerance)


@to_machine_code
@pytest.mark.parametrize(("method", "num_aux"), [(ARML(), 2), (ARML(), 5), (GradNorm(), 2)], ids=["2", "5", "norms"])
@pytest.mark.parametrize("closure", [False, True])
def test_a_batch_shape_first_compiled_at_a_step_without_update_says_what_to_set(method, num_aux, closure):
    """Each shape has a compiled graph of its own, and each is checked at its first update."""
    training = Training(num_aux, compiled=True)
    training.reweighter = Reweighter(method, training.tasks, training.trunk, every=1, convergence=None)
    training.step(closure=closure)
    training.x, training.y = training.x[:20], training.y[:, :20]
    training.descend(training.losses()[0])  # compiled here, for a single pass
    with pytest.raises(ValueError, match=r"allows one backward pass only.*donated_buffer = False"):
        training.step(closure=closure)


def make_compiled_function(*, spoils):
    """A graph as torch.compile makes them: a class of its own; ``spoils``: its first pass overwrites what it kept."""

    class CompiledFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(kept := x.clone())
            ctx.kept = kept
            return x.square()

        @staticmethod
        def backward(ctx, grad):
            result = 2 * grad * ctx.saved_tensors[0]
            if spoils:
                ctx.kept.data.zero_()
            return result

    return CompiledFunction


@pytest.mark.parametrize(
    "measure",
    [lambda losses, shared: alignment(losses, shared, torch.ones(1, 2)), gram, norms],
    ids=["alignment", "gram", "norms"],
)
def test_every_compiled_graph_is_checked_at_its_first_update(measure):
    x = torch.ones(3, requires_grad=True)
    fine, spoiled = make_compiled_function(spoils=False), make_compiled_function(spoils=True)
    measure([fine.apply(x).sum(), x.sum()], [x])
    with pytest.raises(ValueError, match="allows one backward pass only"):
        measure([spoiled.apply(x).sum(), x.sum()], [x])


def test_a_compiled_graph_is_checked_once(monkeypatch):
    x, fine, checks = torch.ones(3, requires_grad=True), make_compiled_function(spoils=False), []
    monkeypatch.setattr(compiled, "check_repeatable", lambda *_: checks.append(1))
    for _ in range(3):
        compiled.check_compiled([fine.apply(x).sum(), x.sum()], [x])
    assert len(checks) == 1


def test_a_backward_pass_that_silently_spoils_the_next_one_is_noticed():
    """Code that was compiled earlier for a single pass, and is found on disk, does this."""

    spoiled = make_compiled_function(spoils=True)
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(ValueError, match="allows one backward pass only"):
        check_repeatable([spoiled.apply(x).sum(), x.sum()], [x])
    check_repeatable([x.square().sum(), x.sum()], [x])


def test_auto_falls_back_on_compiled_graphs():
    case = plain()
    compiled = torch.compile(case.model["trunk"], backend="aot_eager")
    x, heads = torch.randn(7, 3, dtype=torch.float64), case.model["heads"]

    def losses(trunk):
        return torch.stack([head(trunk(x)).square().mean() for head in heads])

    directions = torch.randn(2, 5, dtype=torch.float64)
    expected = alignment(losses(case.model["trunk"]), case.shared, directions, engine=pairwise)
    with pytest.warns(UserWarning, match="double backward"):
        assert_close(alignment(losses(compiled), case.shared, directions), expected)
    by_closure = CentralDifferences(lambda: losses(compiled))
    assert_close(
        alignment(losses(compiled), case.shared, directions, engine=by_closure), expected, rtol=1e-6, atol=1e-7
    )
