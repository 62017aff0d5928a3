"""Other papers' weightings and scalarisers, from TorchJD."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.func import functional_call

from arml.gradients.signals import Signals
from arml.methods.base import Method, Needs, check_positive, require

if TYPE_CHECKING:
    from torchjd.aggregation import Weighting
    from torchjd.scalarization import Scalarizer


class TorchJDMemory(NamedTuple):
    """The current weights, and the number of updates (part of the seed of weightings that draw at random)."""

    weights: Tensor
    updates: Tensor


@dataclass(frozen=True)
class TorchJD(Method[TorchJDMemory]):
    """Any of TorchJD's weightings of the Gram matrix: MGDA, CAGrad, UPGrad, ... Needs ``pip install arml[torchjd]``.

    They treat all tasks alike, so they also choose the main task's weight; negative weights become
    0. Random draws come from ``seed`` and the number of updates, and leave the global random state alone. Weightings
    that keep memory of their own cannot be resumed exactly and are refused.
    """

    weighting: "Weighting[Any]"
    """For example ``torchjd.aggregation.UPGradWeighting()``."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.weighting, torch.nn.Module):
            raise TypeError(
                f"TorchJD takes a weighting such as torchjd.aggregation.UPGradWeighting(). Got {self.weighting!r}."
            )
        if hasattr(self.weighting, "reset"):
            raise ValueError(
                f"{type(self.weighting).__name__} keeps memory of its own, which a checkpoint would lose. "
                "Pass a weighting without memory, such as UPGradWeighting, MGDAWeighting or CAGradWeighting."
            )

    def needs(self) -> Needs:
        """The Gram matrix."""
        return Needs(gram=True)

    def init(self, like: Tensor) -> TorchJDMemory:
        """Weights of 1."""
        return TorchJDMemory(torch.ones_like(like), torch.zeros_like(like[0]))

    def update(self, state: TorchJDMemory, signals: Signals) -> tuple[Tensor, TorchJDMemory]:
        """The weighting's answer to the Gram matrix of the tasks that are present."""
        here = signals.seen()
        if not bool(here.any()):
            return state.weights, state
        gram = require(signals.gram, "a Gram matrix")[here][:, here]
        with _draw_from(self.seed, state.updates), torch.no_grad():
            answer = self.weighting(gram)
        weights = state.weights.clone()
        weights[here] = answer.to(weights).clamp(min=0)
        return weights, TorchJDMemory(weights, state.updates + 1)


class ScalarizerMemory(NamedTuple):
    """The current weights, the number of updates, and what the scalariser has learned, end to end."""

    weights: Tensor
    updates: Tensor
    learned: Tensor


@dataclass(frozen=True)
class TorchJDScalarizer(Method[ScalarizerMemory]):
    r"""Any of TorchJD's scalarisers: uncertainty weighting, smooth Tchebycheff, random weighting, ...

    .. math:: w_i = \max\Bigl(0, \frac{\partial s(L_0, \dots, L_K)}{\partial L_i}\Bigr), \qquad
        \psi \leftarrow \psi - \beta \frac{\partial s}{\partial \psi}

    The weighted sum then has the gradient of the scalar s. Parameters :math:`\psi` of a scalariser, such as the
    variances of ``UW(1 + K)``, are learned here and not by your optimiser, so that a checkpoint holds them. All tasks
    are treated alike: the main task's weight is chosen, too. Needs ``pip install arml[torchjd]``.

    A batch without some of the tasks shows a scalariser the others alone; one that was made with a vector of weights
    or references keeps its weights then. So it does where a derivative is not finite. Random draws come from ``seed``
    and the number of updates. Scalarisers with memory other than parameters (``DWA``, ``FAMO``) cannot be resumed
    exactly and are refused: ``arml.DWA`` and ``arml.FAMO`` can.
    """

    scalarizer: "Scalarizer"
    """For example ``torchjd.scalarization.STCH(mu=0.1)``."""
    lr: float = 0.025
    """beta, the step size of the scalariser's parameters, if it has any."""
    seed: int = 0

    def __post_init__(self) -> None:
        check_positive(self, lr=self.lr)
        if not isinstance(self.scalarizer, torch.nn.Module):
            raise TypeError(
                "TorchJDScalarizer takes a scalariser such as torchjd.scalarization.STCH(0.1). "
                f"Got {self.scalarizer!r}."
            )
        if any(hasattr(self.scalarizer, name) for name in ("step", "update")):
            raise ValueError(
                f"{type(self.scalarizer).__name__} keeps memory of its own, which a checkpoint would lose. Pass a "
                "scalariser whose memory is its parameters, such as UW or IMTLL, or use arml.DWA or arml.FAMO."
            )

    def init(self, like: Tensor) -> ScalarizerMemory:
        """Weights of 1, and the parameters that the scalariser was made with."""
        learned = [p.detach().flatten().to(like) for p in self.scalarizer.parameters()]
        if any(len(part) != len(like) for part in learned):
            raise ValueError(
                f"{self.scalarizer!r} should have one entry for the main task and one per auxiliary task, {len(like)} "
                f"together. Got {len(learned[0])}."
            )
        return ScalarizerMemory(torch.ones_like(like), torch.zeros_like(like[0]), torch.cat([like[:0], *learned]))

    def update(self, state: ScalarizerMemory, signals: Signals) -> tuple[Tensor, ScalarizerMemory]:
        """The derivatives of the scalar with respect to the losses that are present; one step of the parameters."""
        here = signals.seen()
        holds_vectors = any(isinstance(value, Tensor) for value in vars(self.scalarizer).values())
        if not bool(here.any()) or (holds_vectors and not bool(here.all())):
            return state.weights, state
        losses = signals.losses.detach()[here].to(state.weights).requires_grad_()
        learned = state.learned.clone().requires_grad_()
        with torch.enable_grad(), _draw_from(self.seed, state.updates):
            functional_call(self.scalarizer, self._name_parts(learned, here), (losses,)).backward()
        slopes, learned_slopes = require(losses.grad, "losses that count"), learned.grad
        if not bool(slopes.isfinite().all()):
            return state.weights, state
        weights = state.weights.clone()
        weights[here] = slopes.clamp(min=0)
        step = 0.0 if learned_slopes is None else self.lr * signals.stride * learned_slopes
        return weights, ScalarizerMemory(weights, state.updates + 1, state.learned - step)

    def _name_parts(self, learned: Tensor, here: Tensor) -> dict[str, Tensor]:
        """The scalariser's parameters by name, each with the entries of the tasks that are ``here``."""
        named = dict(self.scalarizer.named_parameters())
        parts = learned.split([p.numel() for p in named.values()]) if named else ()
        return {name: part[here] for name, part in zip(named, parts, strict=True)}


@contextmanager
def _draw_from(seed: int, updates: Tensor) -> Iterator[None]:
    """Random draws inside depend on ``seed`` and the number of updates, and leave the global random state alone."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed + int(updates))
        yield
