"""Inner products by recomputing the losses along a direction: no second graph, and the cost does not grow with K.

<g_i, r> is the derivative of L_i along r. A closure that recomputes the losses gives all of them in one pass with
dual numbers, or in two plain passes by central differences. The passes leave no trace: they restore buffers (BatchNorm
statistics) and random state, and repeat the random draws of the pass that made the losses.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from arml.gradients.backward import (
    MISMATCH,
    Average,
    Gradient,
    TaskLosses,
    check_sum,
    direction_gradients,
    dot,
    is_untouched,
)
from arml.gradients.buffers import Buffers, lend_buffers

NOT_REPEATED = (
    "the closure does not repeat the losses (if it draws at random, call reweighter(closure=closure) without losses, "
    "so that the draws can be repeated)"
)
STOPPED = (
    "the closure or one of its tasks stops gradients (torch.no_grad(), .detach(), gradient reversal), which a pass "
    "along the direction does not notice, or reads a parameter that the pass does not reach"
)
ROUGH = "the losses are too rough for differences in this precision"
ROUGHNESS = 0.1
"""The largest second difference, as a share of the first. With ReLU, this share is about the error."""
STEP = 1.5
"""The length of the step of central differences, in roots of the precision: the best one on networks with ReLU."""


@dataclass
class RandomState:
    """The random state of the CPU and of the current accelerator, as it was when this object was made."""

    cpu: Tensor = field(default_factory=torch.get_rng_state)
    accelerator: Tensor | None = field(
        default_factory=lambda: torch.get_device_module().get_rng_state() if torch.accelerator.is_available() else None
    )

    def restore(self) -> None:
        """Later random draws repeat those that followed the making of this object."""
        torch.set_rng_state(self.cpu)
        if self.accelerator is not None:
            torch.get_device_module().set_rng_state(self.accelerator)


class Replay:
    """Runs closures again without a trace: no graph, the same random draws, then random state and buffers as before.

    A hook finds the modules that a closure calls. Compiled code is guarded against hooks and would be recompiled for
    each one; so once a pass has called compiled modules, its modules are remembered instead.
    """

    def __init__(self, *modules: nn.Module) -> None:
        """Starts with ``modules`` that every closure calls."""
        self._modules, self._saw_compiled = modules, False

    @contextmanager
    def __call__(self, start: RandomState | None) -> Iterator[None]:
        """A pass that repeats the draws from ``start``; ``None``: draws from the current state."""
        # The caller's next draws must not depend on whether this step updated the weights.
        now, called = RandomState(), Buffers()
        if start is not None:
            start.restore()
        try:
            with torch.no_grad(), warnings.catch_warnings():
                # A compiled module warns that it calls a hook twice: harmless here.
                warnings.filterwarnings("ignore", message=".*there are global hooks on modules")
                with lend_buffers(self._modules, watch=not self._saw_compiled) as called:
                    yield
        finally:
            now.restore()
            # Only the wrapper of a compiled module has this attribute.
            if any(hasattr(part, "_orig_mod") for part in called):
                self._modules, self._saw_compiled = tuple(called), True


class AlongDirections(ABC):
    """What engines that recompute the losses have in common."""

    _values: list[Tensor]
    """Losses as the closure computed them, for every direction of the last call."""

    @abstractmethod
    def derivative(self, shared: Sequence[Tensor], r: Gradient) -> Tensor:
        """The derivatives [1 + K] of all losses along ``r``."""

    def __call__(self, losses: TaskLosses, shared: Sequence[Tensor], directions: Tensor, average: Average) -> Tensor:
        """A [D, 1 + K]; see :data:`arml.gradients.backward.Engine`."""
        self._forget()
        local = direction_gradients(losses, shared, directions)
        rs = average(local)
        rows = [self.derivative(shared, r) for r in rs]
        for row, c, mine, r in zip(rows, directions, local, rs, strict=True):
            # Another random draw, or a parameter that dual numbers do not reach, breaks this sum. The gradient in it is
            # the local one, because the closure recomputes the losses of this process only.
            check_sum(row, c, dot(mine, r), lambda: self.explain(losses))
        self._check_smooth(losses)
        return torch.stack(rows)

    def _forget(self) -> None:
        self._values.clear()

    def _check_smooth(self, losses: TaskLosses) -> None:
        """Raises if the last call was too imprecise; by default it never is."""
        del losses

    def explain(self, losses: TaskLosses) -> str:
        """Why products differ from those of the graph: other losses, or the same ones with other derivatives."""
        given = torch.stack(list(losses)).detach()
        repeated = all(torch.allclose(values.detach(), given, rtol=1e-2, atol=0) for values in self._values)
        return STOPPED if repeated else NOT_REPEATED


@dataclass(frozen=True)
class DualNumbers(AlongDirections):
    """One pass in which every shared parameter of ``module`` carries its part of the direction as a tangent.

    A dual number is a new tensor. It must be put where the network reads the parameter, so the module is needed.
    """

    closure: Callable[[], Tensor]
    """Recomputes the losses, [1 + K]."""
    module: nn.Module
    """Holds the shared parameters; the closure calls it, or a module around it."""
    start: RandomState | None = None
    """Random state before the losses were first computed; ``None``: the closure draws nothing at random."""
    replay: Replay = field(default_factory=Replay)
    _values: list[Tensor] = field(default_factory=list, init=False, repr=False)

    def derivative(self, shared: Sequence[Tensor], r: Gradient) -> Tensor:
        """The derivatives [1 + K] of all losses along ``r``."""
        with forward_ad.dual_level(), self.replay(self.start):
            duals = {id(p): _make_dual(p.detach(), part.to(p)) for p, part in _touched_parameters(shared, r)}
            with _replace_parameters(self.module, duals):
                primal, tangent = forward_ad.unpack_dual(self.closure())
            self._values.append(primal)
            # Without a tangent, no loss depends on any of these parameters.
            return torch.zeros_like(primal) if tangent is None else tangent.clone()


@dataclass(frozen=True)
class CentralDifferences(AlongDirections):
    """Two plain passes at theta +- h r: works where other engines do not.

    The relative error in float32 is about 2e-3 with ReLU, and less without kinks. It is larger where losses are nearly
    0; the second difference shows it, and the engine fails if it is too large.
    """

    closure: Callable[[], Tensor]
    """Recomputes the losses, [1 + K]."""
    start: RandomState | None = None
    """Random state before the losses were first computed; ``None``: the closure draws nothing at random."""
    replay: Replay = field(default_factory=Replay)
    _values: list[Tensor] = field(default_factory=list, init=False, repr=False)
    _halves: list[Tensor] = field(default_factory=list, init=False, repr=False)
    """Half the difference of the losses ahead and behind."""

    def derivative(self, shared: Sequence[Tensor], r: Gradient) -> Tensor:
        """The derivatives [1 + K] of all losses along ``r``."""
        length = dot(r, r).sqrt()
        if length == 0:  # h would be infinite; the pass gives the shape of the answer
            return torch.zeros_like(self._losses_at(shared, r, 0.0))
        precision = max(torch.finfo(p.dtype).eps for p in shared)
        # Kinks (ReLU) make the error grow with h, rounding with 1 / h: the best h goes with the root of the precision.
        # Divided by the length of r, the step is as long for small gradients as for large ones.
        h = float(STEP * precision**0.5 / length)
        ahead, behind = self._losses_at(shared, r, h), self._losses_at(shared, r, -h)
        self._values.append((ahead + behind) / 2)
        self._halves.append((ahead - behind) / 2)
        return self._halves[-1] / h

    def error(self, precision: float) -> tuple[float, float]:
        """The error to allow for, as a share of ||v||^2, and of the loss times ||v||, which rounding leaves."""
        return MISMATCH, precision**0.5

    def _forget(self) -> None:
        super()._forget()
        self._halves.clear()

    def _check_smooth(self, losses: TaskLosses) -> None:
        given = torch.stack(list(losses)).detach()
        for mean, half in zip(self._values, self._halves, strict=True):
            # A kink or a rounding error adds as much to the second difference as to the error of the first.
            if (mean - given).norm() > ROUGHNESS * half.norm():
                raise RuntimeError(ROUGH)

    def explain(self, losses: TaskLosses) -> str:
        """Why products differ from those of the graph."""
        reason = super().explain(losses)
        return f"{reason}, or {ROUGH}" if reason == STOPPED else reason

    def _losses_at(self, shared: Sequence[Tensor], r: Gradient, h: float) -> Tensor:
        with self.replay(self.start), _shift_parameters(shared, r, h):
            return self.closure()


def _make_dual(primal: Tensor, tangent: Tensor) -> Tensor:
    with warnings.catch_warnings():  # torch's first dual number loads a part of torch that torch calls deprecated
        warnings.simplefilter("ignore", DeprecationWarning)
        dual: Tensor = forward_ad.make_dual(primal, tangent)
    return dual


@contextmanager
def _replace_parameters(module: nn.Module, replacements: dict[int, Tensor]) -> Iterator[None]:
    """Puts other tensors in the places of parameters, found by identity: tied ones are replaced in every place."""
    places = [(part, name, p) for part in module.modules() for name, p in part._parameters.items() if p is not None]
    places = [(part, name, p) for part, name, p in places if id(p) in replacements]
    try:
        for part, name, p in places:
            # An assignment to the attribute would raise: torch accepts nothing but a Parameter there.
            part._parameters[name] = replacements[id(p)]  # type: ignore[assignment]
        yield
    finally:
        for part, name, p in places:
            part._parameters[name] = p


@contextmanager
def _shift_parameters(shared: Sequence[Tensor], r: Gradient, h: float) -> Iterator[None]:
    """Moves parameters to theta + h r.

    ``.data`` is exchanged, not written to: the caller's graph still refers to the old values.
    """
    touched = _touched_parameters(shared, r)
    origin = [p.data for p, _ in touched]
    try:
        for p, part in touched:
            p.data = torch.add(p.data, part.to(p), alpha=h)
        yield
    finally:
        for (p, _), data in zip(touched, origin, strict=True):
            p.data = data


def _touched_parameters(shared: Sequence[Tensor], r: Gradient) -> list[tuple[Tensor, Tensor]]:
    """Parameters with their parts of the direction, without those that no loss depends on."""
    # Their part is one expanded 0; a tangent or a copy of such a parameter would take the memory of all its entries.
    return [(p, part) for p, part in zip(shared, r, strict=True) if not is_untouched(part)]
