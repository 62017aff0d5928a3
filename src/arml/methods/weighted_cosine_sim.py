"""Gradient cosine similarity as a weight."""

from dataclasses import dataclass

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.methods.base import (
    Method,
    Needs,
    Weights,
    cosines_with_main,
    main_direction,
    prepend_main,
    steerable_tasks,
)


@dataclass(frozen=True)
class WeightedCosineSim(Method[Weights]):
    r"""A task counts as much as its gradient agrees with the main one: :math:`w_k = \max(0, \cos(g_0, g_k))`.

    Du et al., *Adapting Auxiliary Losses Using Gradient Similarity*, arXiv:1812.02224, the weighted version;
    ``CosineSim`` is the unweighted one. The paper weights the gradient of every step by its own cosine. Here the
    weights stay until the next update; ``Reweighter(every=1)`` is the paper's algorithm.

    A gradient of zero agrees with nothing: its task has weight 0, and so have all tasks if the main gradient is zero.
    """

    def init(self, like: Tensor) -> Weights:
        """Weights of 1."""
        return Weights(torch.ones_like(like))

    def needs(self) -> Needs:
        """The norms."""
        return Needs(norms=True)

    def directions(self, state: Weights) -> Tensor:
        """c = e_0."""
        return main_direction(state.weights)

    def update(self, state: Weights, signals: Signals) -> tuple[Tensor, Weights]:
        """The cosine of tasks that agree with the main task at this step, 0 for the others."""
        here = steerable_tasks(signals)
        if not bool(here.any()):
            return state.weights, state
        cosines = cosines_with_main(signals)[1:].clamp(min=0)
        weights = prepend_main(torch.where(here, cosines, state.weights[1:]))
        return weights, Weights(weights)
