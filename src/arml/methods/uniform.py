"""Every task counts the same."""

from dataclasses import dataclass

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.methods.base import Method, Needs, Weights


@dataclass(frozen=True)
class Uniform(Method[Weights]):
    r"""All weights are 1: :math:`w_k = 1`. The usual choice, and the baseline of every comparison."""

    def needs(self) -> Needs:
        """Nothing."""
        return Needs(losses=False)

    def init(self, like: Tensor) -> Weights:
        """Weights of 1."""
        return Weights(torch.ones_like(like))

    def update(self, state: Weights, signals: Signals) -> tuple[Tensor, Weights]:
        """The same weights."""
        del signals
        return state.weights, state
