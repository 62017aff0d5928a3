"""Online learning of auxiliary losses."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.methods.base import Method, asked_for, beside_main, check_positive, main_direction, steerable


class OLAUXMemory(NamedTuple):
    """Weights in force, inner products summed since the last change [K], and how many updates that was."""

    weights: Tensor
    accumulated: Tensor
    updates: Tensor


@dataclass(frozen=True)
class OLAUX(Method[OLAUXMemory]):
    r"""Raises the weight of tasks along which the main loss falls.

    .. math:: w_k \leftarrow \max\Bigl(0,\ w_k + \beta \sum_{t=1}^{N} \langle g_0^{(t)}, g_k^{(t)} \rangle\Bigr)

    once every N updates: one step of gradient descent on how much N training steps lower the main loss. Lin et al.,
    *Adaptive Auxiliary Task Weighting for Reinforcement Learning*, NeurIPS 2019. The ARML release has
    N = 1 and, as here, no normalisation; its step size of theta is part of our beta.
    """

    lr: float = 0.05
    """beta."""
    horizon: int = 1
    """N, updates between two changes of the weights."""

    def __post_init__(self) -> None:
        check_positive(self, lr=self.lr)
        if self.horizon < 1 or self.horizon != int(self.horizon):
            raise ValueError(f"OLAUX: `horizon` should be a whole number of at least 1. Got {self.horizon!r}.")

    def init(self, like: Tensor) -> OLAUXMemory:
        """Weights of 1."""
        return OLAUXMemory(torch.ones_like(like), torch.zeros_like(like[1:]), torch.zeros_like(like[0]))

    def directions(self, state: OLAUXMemory) -> Tensor:
        """c = e_0."""
        return main_direction(state.weights)

    def update(self, state: OLAUXMemory, signals: Signals) -> tuple[Tensor, OLAUXMemory]:
        """Adds up inner products; every ``horizon`` updates the weights move by their sum."""
        here = steerable(signals)
        if not bool(here.any()):
            return state.weights, state
        products = asked_for(signals.alignment, "an alignment")[0, 1:]
        accumulated = state.accumulated + torch.where(here, products, torch.zeros_like(products))
        if state.updates + 1 < self.horizon:
            return state.weights, state._replace(accumulated=accumulated, updates=state.updates + 1)
        moved = (state.weights[1:] + self.lr * signals.stride * accumulated).clamp(min=0)
        weights = beside_main(torch.where(here, moved, state.weights[1:]))
        # What a task that is missing now has gathered waits for its next turn.
        left = torch.where(here, torch.zeros_like(accumulated), accumulated)
        return weights, OLAUXMemory(weights, left, torch.zeros_like(state.updates))
