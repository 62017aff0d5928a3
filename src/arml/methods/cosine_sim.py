"""Gradient cosine similarity as a gate."""

from dataclasses import dataclass

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.methods.base import Method, Weights, main_direction, prepend_main, require, steerable_tasks


@dataclass(frozen=True)
class CosineSim(Method[Weights]):
    r"""A task counts when its gradient agrees with the main one: :math:`w_k = 1[\langle g_0, g_k \rangle > 0]`.

    Du et al., *Adapting Auxiliary Losses Using Gradient Similarity*, arXiv:1812.02224, the unweighted version.
    The ARML release looks at the last tensor of the last block only and freezes the gates after
    50 000 steps; here all shared parameters count.
    """

    def init(self, like: Tensor) -> Weights:
        """Weights of 1."""
        return Weights(torch.ones_like(like))

    def directions(self, state: Weights) -> Tensor:
        """c = e_0."""
        return main_direction(state.weights)

    def update(self, state: Weights, signals: Signals) -> tuple[Tensor, Weights]:
        """1 for tasks that agree with the main task at this step, 0 for the others."""
        here = steerable_tasks(signals)
        if not bool(here.any()):
            return state.weights, state
        agrees = require(signals.alignment, "an alignment")[0, 1:] > 0
        weights = prepend_main(torch.where(here, agrees.to(state.weights), state.weights[1:]))
        return weights, Weights(weights)
