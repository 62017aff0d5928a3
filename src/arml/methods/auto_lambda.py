"""Auto-Lambda, to first order."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.methods._adam import Moments, adam_direction, begin_moments
from arml.methods.base import Method, check_positive, main_direction, prepend_main, require, steerable_tasks


class AutoLambdaMemory(NamedTuple):
    """The current weights, then Adam's moments per auxiliary task [K]."""

    weights: Tensor
    mean: Tensor
    square: Tensor
    updates: Tensor


@dataclass(frozen=True)
class AutoLambda(Method[AutoLambdaMemory]):
    r"""Weights after which one training step lowers the main loss most.

    .. math:: \min_w L_0\Bigl(\theta - \eta \sum_i w_i g_i\Bigr), \qquad
        -\frac{\partial L_0}{\partial w_k} \approx \eta\, \langle g_0, g_k \rangle

    to first order in :math:`\eta`. Adam takes a step of size beta on :math:`w_k` along the inner product, then
    :math:`w_k \leftarrow \max(0, w_k)`. Liu et al., *Auto-Lambda: Disentangling Dynamic Task Relationships*, TMLR 2022.
    Give the paper's second main batch as ``reweighter(main, aux, steer=loss)``: the gradient of the held-out main
    loss is then :math:`g_0`. Without it the training batch is used, whose noise favours tasks on the same examples.

    The release evaluates :math:`g_0` after a virtual step and differentiates by central differences; the
    first order leaves that out. It also learns the main weight, starts all weights at 0.1, lets them become negative,
    and has a step size of 0.0001 at every step, a thousandth of the start. Here the main task has weight 1, the others
    start at 1, and updates are rarer and longer. ``OLAUX`` is the same slope with a plain step, which goes with the
    square of the losses; Adam's does not.
    """

    lr: float = 0.02
    """beta, the step size of the weights: about what a weight moves in one update while its task keeps agreeing."""

    def __post_init__(self) -> None:
        check_positive(self, lr=self.lr)

    def init(self, like: Tensor) -> AutoLambdaMemory:
        """Weights of 1."""
        return AutoLambdaMemory(torch.ones_like(like), *begin_moments(like[1:]))

    def directions(self, state: AutoLambdaMemory) -> Tensor:
        """c = e_0."""
        return main_direction(state.weights)

    def update(self, state: AutoLambdaMemory, signals: Signals) -> tuple[Tensor, AutoLambdaMemory]:
        """One step of the tasks that are present; the others keep their weight."""
        here = steerable_tasks(signals)
        if not bool(here.any()):
            return state.weights, state
        products = require(signals.alignment, "an alignment")[0, 1:]
        step, moments = adam_direction(products, here, Moments(*state[1:]))
        moved = (state.weights[1:] + self.lr * signals.stride * step).clamp(min=0)
        weights = prepend_main(torch.where(here, moved, state.weights[1:]))
        return weights, AutoLambdaMemory(weights, *moments)
