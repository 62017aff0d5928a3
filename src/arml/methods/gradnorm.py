"""Gradient normalisation."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.methods.base import Method, Needs, check_positive, prepend_main, require


class GradNormMemory(NamedTuple):
    """The current weights, and the first loss of every auxiliary task [K] (NaN: none yet)."""

    weights: Tensor
    first: Tensor


@dataclass(frozen=True)
class GradNorm(Method[GradNormMemory]):
    r"""Brings the weighted gradients of the auxiliary tasks to a common size, larger for tasks that learn slowly.

    .. math::
        G_k = w_k \|g_k\|, \quad
        \rho_k = \frac{L_k / L_k^{first}}{\mathrm{mean}_j\, L_j / L_j^{first}}, \quad
        w_k \leftarrow w_k - \beta\, \mathrm{sign}(G_k - \bar G \rho_k^{a}) \|g_k\|

    then the weights are scaled to the sum K. A slow task has a large :math:`\rho_k`, so its target is high and it gains
    weight. Chen et al., *GradNorm*, ICML 2018, for the auxiliary tasks; the main task has weight 1, as in the
    ARML release (which also differentiates through the mean norm; the paper's text holds it fixed, and so do we).

    A task whose loss is, or began, near or below zero has no meaningful rate: it counts as average.
    """

    lr: float = 0.025
    """beta."""
    asymmetry: float = 1.0
    """a, how strongly slow tasks are favoured; 0 makes all weighted gradients equally long."""
    layer: str | None = None
    """The shared layer whose gradients are measured, by name: the paper takes the last. ``None``: all of them."""
    floor: float = 1e-6
    """Losses below this have no rate."""

    def __post_init__(self) -> None:
        check_positive(self, lr=self.lr, floor=self.floor)
        if not 0 <= self.asymmetry < float("inf"):
            raise ValueError(f"GradNorm: `asymmetry` should be a number of at least 0. Got {self.asymmetry!r}.")

    def needs(self) -> Needs:
        """The norms, on ``layer``."""
        return Needs(norms=True, layer=self.layer)

    def can_move(self, num_aux: int) -> bool:
        """One weight is given by the sum."""
        return num_aux > 1

    def init(self, like: Tensor) -> GradNormMemory:
        """Weights of 1."""
        return GradNormMemory(torch.ones_like(like), torch.full_like(like[1:], float("nan")))

    def update(self, state: GradNormMemory, signals: Signals) -> tuple[Tensor, GradNormMemory]:
        """One step of the weights of the tasks that are present; their sum does not change."""
        here = signals.seen()[1:]
        if not bool(here.any()):
            return state.weights, state
        lengths, losses = require(signals.norms, "norms")[1:], signals.losses[1:]
        first = torch.where(here & state.first.isnan(), losses, state.first)
        alpha = state.weights[1:].clone()
        alpha[here] = self._step(alpha[here], lengths[here], self._rates(losses[here], first[here]), signals.stride)
        weights = prepend_main(alpha)
        return weights, GradNormMemory(weights, first)

    def _rates(self, losses: Tensor, first: Tensor) -> Tensor:
        """rho: the share of its first loss that a task still has, relative to the mean of all tasks."""
        known = (losses > self.floor) & (first > self.floor)
        left = torch.where(known, losses / first, torch.zeros_like(losses))
        return torch.where(known, left / left[known].mean(), torch.ones_like(losses))

    def _step(self, alpha: Tensor, lengths: Tensor, rates: Tensor, stride: float) -> Tensor:
        weighted = alpha * lengths
        target = weighted.mean() * rates**self.asymmetry
        moved = (alpha - self.lr * stride * torch.sign(weighted - target) * lengths).clamp(min=0)
        # A step long enough to switch every task off leaves no weights to scale: it is not taken.
        return moved * (alpha.sum() / moved.sum()) if bool(moved.sum() > 0) else alpha
