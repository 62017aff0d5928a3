"""Online learning of auxiliary losses."""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.methods.base import (
    Method,
    check_positive,
    check_step_limit,
    main_direction,
    prepend_main,
    require,
    shorten_step,
    steerable_tasks,
)


class OLAUXMemory(NamedTuple):
    """The current weights, the sum of inner products since they last changed [K], and the updates since then."""

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
    max_step: float = field(default=0.75, kw_only=True)
    """Longest step of a weight; a longer one is shortened as a whole. Ours; ``math.inf`` is the paper's algorithm."""

    def __post_init__(self) -> None:
        check_positive(self, lr=self.lr)
        check_step_limit(self, self.max_step)
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
        here = steerable_tasks(signals)
        if not bool(here.any()):
            return state.weights, state
        products = require(signals.alignment, "an alignment")[0, 1:]
        accumulated = state.accumulated + torch.where(here, products, torch.zeros_like(products))
        if state.updates + 1 < self.horizon:
            return state.weights, state._replace(accumulated=accumulated, updates=state.updates + 1)
        step = shorten_step(self.lr * signals.stride * torch.where(here, accumulated, 0), self.max_step)
        moved = (state.weights[1:] + step).clamp(min=0)
        weights = prepend_main(torch.where(here, moved, state.weights[1:]))
        # A task that is missing now keeps its sum for the next change of the weights.
        left = torch.where(here, torch.zeros_like(accumulated), accumulated)
        return weights, OLAUXMemory(weights, left, torch.zeros_like(state.updates))
