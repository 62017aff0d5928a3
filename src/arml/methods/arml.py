"""Auxiliary task reweighting for minimum-data learning."""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.methods._simplex import Projection, choose_projection
from arml.methods.base import (
    Method,
    check_positive,
    check_step_limit,
    prepend_main,
    require,
    shorten_step,
    steerable_tasks,
)


class ARMLMemory(NamedTuple):
    """The current weights, and the size of the slopes so far (for ``scale_free``)."""

    weights: Tensor
    mean_square: Tensor
    updates: Tensor


@dataclass(frozen=True)
class ARML(Method[ARMLMemory]):
    r"""Weights that make the auxiliary gradient resemble the main one.

    .. math:: \min_{\alpha \ge 0,\ \sum_k \alpha_k = K} \Bigl\| g_0 - \sum_k \alpha_k g_k \Bigr\|^2

    by one projected gradient step per update. With :math:`r = g_0 - \sum_k \alpha_k g_k` the slope is
    :math:`-2 \langle g_k, r \rangle`, so inner products with the one direction c = (1, -alpha) are enough.

    Shi et al., *Auxiliary Task Reweighting for Minimum-data Learning*, NeurIPS 2020, Algorithm 1 and, without
    noise and second stage, Algorithm 2. The authors' release shifts and clamps instead of projecting
    (``projection="shift_clamp"``), skips the step of theta whenever it updates alpha, and counts as shared all but the
    last six tensors of the network; none of that is done here.

    The slope goes with the square of the losses, so any ``lr`` is far too long for some network. ``max_step`` limits
    what one update can do. It is ours; with ``max_step=math.inf`` this is the paper's algorithm to the letter.
    """

    lr: float = 0.05
    """beta, the step size of the weights; the paper draws it from [0.0005, 0.05]."""
    projection: Projection = "euclidean"
    """``"euclidean"`` keeps the sum at K; ``"shift_clamp"`` is the authors' release, for replication."""
    scale_free: bool = False
    """Divide slopes by their running root mean square: a factor on all losses then changes nothing. Ours."""
    decay: float = 0.99
    """How slowly the running mean square forgets; only used with ``scale_free``."""
    max_step: float = field(default=0.75, kw_only=True)
    """Longest step of a weight before projecting; equal weights are 1. A longer step is shortened as a whole, which
    keeps its direction. From equal weights no update can reach 0 if this is below 1."""

    def __post_init__(self) -> None:
        check_positive(self, lr=self.lr)
        check_step_limit(self, self.max_step)
        choose_projection(self.projection)
        if not 0 <= self.decay < 1:
            raise ValueError(f"ARML: `decay` should be in [0, 1). Got {self.decay!r}.")

    def can_move(self, num_aux: int) -> bool:
        """One weight is given by the sum."""
        return num_aux > 1

    def init(self, like: Tensor) -> ARMLMemory:
        """Weights of 1."""
        return ARMLMemory(torch.ones_like(like), torch.zeros_like(like[0]), torch.zeros_like(like[0]))

    def directions(self, state: ARMLMemory) -> Tensor:
        """c = (1, -alpha)."""
        return torch.cat([state.weights[:1], -state.weights[1:]]).unsqueeze(0)

    def update(self, state: ARMLMemory, signals: Signals) -> tuple[Tensor, ARMLMemory]:
        """One projected step of the tasks that are present; the others keep their weight."""
        here = steerable_tasks(signals)
        if not bool(here.any()):
            return state.weights, state
        alpha = state.weights[1:]
        step, state = self.step(state, signals, here)
        alpha = self.move(alpha, step, here, total=len(alpha))
        weights = prepend_main(alpha)
        return weights, state._replace(weights=weights)

    def step(self, state: ARMLMemory, signals: Signals, here: Tensor) -> tuple[Tensor, ARMLMemory]:
        """beta times the slope [K], scaled if ``scale_free``, and the new memory."""
        slope, lr = -2 * require(signals.alignment, "an alignment")[0, 1:], self.lr * signals.stride
        if not self.scale_free:
            return lr * slope, state
        mean_square = self.decay * state.mean_square + (1 - self.decay) * slope[here].square().mean()
        updates = state.updates + 1
        size = (mean_square / (1 - self.decay**updates)).sqrt()
        slope = torch.where(size > 0, slope / size, torch.zeros_like(slope))
        return lr * slope, state._replace(mean_square=mean_square, updates=updates)

    def move(self, alpha: Tensor, step: Tensor, free: Tensor, *, total: float | Tensor) -> Tensor:
        """``alpha`` moved by ``-step`` where ``free``, with all weights summing to ``total``.

        No weight moves further than ``2 * max_step``, nor further than ``max_step`` while all stay above 0, unless the
        sum itself changes.
        """
        if not bool(free.any()):
            return alpha
        project, step = choose_projection(self.projection), step[free]
        # What the steps of all weights have in common is projected away: only the rest counts.
        centred = step - step.mean()
        if bool(centred.abs().max() > self.max_step):
            step = shorten_step(centred, self.max_step)
        moved = alpha.clone()
        moved[free] = project(alpha[free] - step, (total - alpha[~free].sum()).clamp(min=0))
        return moved
