"""Gradient surgery that protects the main task."""

from dataclasses import dataclass

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.methods.base import Method, Weights, main_direction, require, steerable_tasks


@dataclass(frozen=True)
class PriPCGrad(Method[Weights]):
    r"""Removes from every auxiliary gradient the part that points against the main one.

    .. math::
        \tilde g_k = g_k - \min(0, \langle g_k, g_0 \rangle) \frac{g_0}{\|g_0\|^2}, \qquad
        g_0 + \sum_k \tilde g_k = w_0\, g_0 + \sum_k g_k, \quad
        w_0 = 1 - \sum_k \frac{\min(0, \langle g_k, g_0 \rangle)}{\|g_0\|^2}

    All that is removed is a multiple of :math:`g_0`, so the projection is a weight of the main task; auxiliary
    weights are 1. The main loss does not rise to first order: :math:`\langle g_0, w_0 g_0 + \sum_k g_k \rangle \ge
    \|g_0\|^2`. Yu et al., *Gradient Surgery for Multi-Task Learning* (PCGrad), NeurIPS 2020, with the main task as the
    only one to be protected; nothing is drawn at random then.

    As a weight of a loss, :math:`w_0` also counts for the main task's head, whose gradient the paper leaves alone, and
    it stays until the next update: ``Reweighter(every=1)`` projects at every step. It is meant for the gradients that
    train: with ``steer`` the conflict with the held-out gradient is removed along the training one. Without a main
    gradient there is no conflict: the weight is 1. With ``train_on_main=False`` this is ``Uniform``.
    """

    max_weight: float = 10.0
    """Largest weight of the main task: a main gradient near zero would have any. Ours; ``math.inf``: no limit."""

    def __post_init__(self) -> None:
        if not self.max_weight >= 1:
            raise ValueError(
                "PriPCGrad: `max_weight` should be a number of at least 1, or math.inf for no limit. "
                f"Got {self.max_weight!r}."
            )

    def init(self, like: Tensor) -> Weights:
        """Weights of 1."""
        return Weights(torch.ones_like(like))

    def directions(self, state: Weights) -> Tensor:
        """c = e_0, which also gives the square of the main gradient."""
        return main_direction(state.weights)

    def update(self, state: Weights, signals: Signals) -> tuple[Tensor, Weights]:
        """The main weight that removes the conflicts of the tasks that are present."""
        here = steerable_tasks(signals)
        if not bool(here.any()):
            return state.weights, state
        products = require(signals.alignment, "an alignment")[0]
        conflict, square = products[1:][here].clamp(max=0).sum(), products[0]
        main = 1 - conflict / square if bool(square > 0) else torch.ones_like(square)
        weights = state.weights.clone()
        weights[0] = main.clamp(max=min(self.max_weight, torch.finfo(main.dtype).max))
        return weights, Weights(weights)
