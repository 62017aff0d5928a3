"""Mirror descent on a mixture of sources."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.methods.base import (
    Method,
    Weights,
    check_positive,
    check_step_limit,
    main_direction,
    prepend_main,
    require,
    shorten_step,
    steerable_tasks,
)

LEAST = 1e-12
"""A weight below this counts as this: a source that is rarely drawn can still come back."""


@dataclass(frozen=True)
class DoGE(Method[Weights]):
    r"""A mixture of sources whose gradients point along the main one.

    .. math:: w_k \leftarrow K\,
        \frac{w_k e^{\beta \langle g_0, g_k \rangle}}{\sum_j w_j e^{\beta \langle g_0, g_j \rangle}}

    One step of mirror descent, with the entropy as the distance, on how much a training step lowers the main loss. Fan
    et al., *DoGE: Domain Reweighting with Generalization Estimation*, ICML 2024, with a target of its own: its
    :math:`\eta_t / \mu` is our :math:`\beta`. ``TAWT`` is the same step on cosines, and on the main weight, too.

    The paper trains a small network first, averages the mixture over its training, and trains a large one with the
    average. Here one network learns with the mixture as it is; after convergence the average is kept. Sources that
    take turns are measured over several batches, then all of them move together.
    """

    lr: float = 0.1
    """beta, the step size. It goes with the square of the losses."""
    max_step: float = field(default=1.0, kw_only=True)
    """Largest exponent, relative to the mean of all sources; a longer step is shortened as a whole. Ours; ``math.inf``
    is the paper's algorithm."""

    def __post_init__(self) -> None:
        check_positive(self, lr=self.lr)
        check_step_limit(self, self.max_step)

    def can_move(self, num_aux: int) -> bool:
        """A single source has weight 1."""
        return num_aux > 1

    def init(self, like: Tensor) -> Weights:
        """Weights of 1."""
        return Weights(torch.ones_like(like))

    def directions(self, state: Weights) -> Tensor:
        """c = e_0."""
        return main_direction(state.weights)

    def update(self, state: Weights, signals: Signals) -> tuple[Tensor, Weights]:
        """One step of the sources that are present; together they keep their weight, and so does every other one."""
        here = steerable_tasks(signals)
        if not bool(here.any()):
            return state.weights, state
        products = require(signals.alignment, "an alignment")[0, 1:][here]
        step = shorten_step(self.lr * signals.stride * (products - products.mean()), self.max_step)
        old = state.weights[1:][here]
        alpha = state.weights[1:].clone()
        alpha[here] = old.sum() * torch.softmax(old.clamp(min=LEAST).log() + step, dim=0)
        weights = prepend_main(alpha)
        return weights, Weights(weights)
