"""Homoscedastic uncertainty of tasks as weights."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.methods.base import Method, check_positive, prepend_main, warn_not_positive


class UncertaintyMemory(NamedTuple):
    """The current weights, and the logarithm of every auxiliary task's variance [K]."""

    weights: Tensor
    log_variance: Tensor


@dataclass(frozen=True)
class UncertaintyWeighting(Method[UncertaintyMemory]):
    r"""Learns the noise of every auxiliary task together with the network: noisy tasks count less.

    .. math:: \min_{s} \sum_k e^{-s_k} L_k + s_k, \qquad
        s_k \leftarrow s_k - \beta \max(-1,\ 1 - e^{-s_k} L_k), \qquad w_k = e^{-s_k}

    :math:`s_k` is the logarithm of a variance. For a constant loss the weight ends at :math:`1 / L_k`, as in
    ``AdaLoss``. Kendall et al., *Multi-Task Learning Using Uncertainty to Weigh Losses for Scene Geometry and
    Semantics*, CVPR 2018. The paper has a factor 1/2 on one or both terms, depending on the kind of loss, and leaves
    the step of :math:`s` to the network's optimiser. It treats all tasks alike; here the main task has weight 1.

    The slope is cut at -1, its mirror image of the largest positive one, so a large loss cannot throw a weight away:
    no :math:`s_k` moves further than beta in one update. A loss that is not positive has no such minimum: its weight
    stays as it was, with a warning.
    """

    lr: float = 0.025
    """beta, the step size of the log-variances."""
    floor: float = 1e-6
    """Losses below this count as this, so no weight ends above 1 / ``floor``."""

    def __post_init__(self) -> None:
        check_positive(self, lr=self.lr, floor=self.floor)

    def init(self, like: Tensor) -> UncertaintyMemory:
        """Variances and weights of 1."""
        return UncertaintyMemory(torch.ones_like(like), torch.zeros_like(like[1:]))

    def update(self, state: UncertaintyMemory, signals: Signals) -> tuple[Tensor, UncertaintyMemory]:
        """One step of the log-variances of the tasks that are present."""
        losses, here = signals.losses[1:], signals.seen()[1:]
        positive = losses > 0
        if bool((here & ~positive).any()):
            warn_not_positive(self, losses[here & ~positive])
        here = here & positive
        if not bool(here.any()):
            return state.weights, state
        slope = (1 - state.weights[1:] * losses.clamp(min=self.floor)).clamp(min=-1)
        moved = (state.log_variance - self.lr * signals.stride * slope).clamp(min=math.log(self.floor))
        log_variance = torch.where(here, moved, state.log_variance)
        weights = prepend_main(torch.where(here, (-log_variance).exp(), state.weights[1:]))
        return weights, UncertaintyMemory(weights, log_variance)
