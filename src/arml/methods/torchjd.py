"""Other papers' weightings, from TorchJD."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.methods.base import Method, Needs, require

if TYPE_CHECKING:
    from torchjd.aggregation import Weighting


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
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.default_generator.manual_seed(self.seed + int(state.updates))
            answer = self.weighting(gram)
        weights = state.weights.clone()
        weights[here] = answer.to(weights).clamp(min=0)
        return weights, TorchJDMemory(weights, state.updates + 1)
