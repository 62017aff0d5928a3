"""Fast adaptive multitask optimisation."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.methods._adam import Moments, adam_direction, begin_moments
from arml.methods.base import Method, check_positive, prepend_main, warn_not_positive


class FAMOMemory(NamedTuple):
    """The current weights; then per auxiliary task [K] what follows."""

    weights: Tensor
    logits: Tensor
    last: Tensor
    """The last loss; NaN: none yet."""
    change: Tensor
    """How much its logarithm fell at the last update; NaN: unknown."""
    mean: Tensor
    square: Tensor
    updates: Tensor


@dataclass(frozen=True)
class FAMO(Method[FAMOMemory]):
    r"""Lowers the logarithms of the losses at the same rate, by more weight for those that fall slowly.

    .. math::
        z = \mathrm{softmax}(\xi), \quad w_k \propto \frac{z_k}{L_k + \epsilon}, \quad \sum_k w_k = K, \qquad
        \delta_k = \log (L_k^{last} + \epsilon) - \log (L_k + \epsilon), \quad
        s_k = z_k \Bigl(\delta_k - \sum_j z_j \delta_j\Bigr) + \gamma \xi_k

    and Adam takes a step of size beta on the logits :math:`\xi` along -s. Liu et al., *FAMO: Fast Adaptive Multitask
    Optimization*, NeurIPS 2023. Adam, beta, gamma and epsilon are the release's.

    Paper and release compute the losses of the *same* batch a second time after the step. A method sees each batch
    once, so the last loss here belongs to the batch before: :math:`\delta` also holds the difference between two
    batches, which has mean 0 and cancels over time but makes Adam's steps shorter. The paper treats all tasks alike,
    with weights that sum to 1; here the main task has weight 1 and the auxiliary weights sum to K.

    A loss that is not positive has no logarithm: its weight stays as it was, with a warning. Tasks that are missing
    keep their weight, logit, last loss and change; the sum is K again once all tasks have been present.
    """

    lr: float = 0.025
    """beta, the step size of the logits."""
    decay: float = 0.01
    """gamma, how strongly logits are drawn back to 0. 0.01 is the release's."""
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        check_positive(self, lr=self.lr, epsilon=self.epsilon)
        if not 0 <= self.decay < float("inf"):
            raise ValueError(f"FAMO: `decay` should be a number of at least 0. Got {self.decay!r}.")

    def can_move(self, num_aux: int) -> bool:
        """One weight is given by the sum."""
        return num_aux > 1

    def init(self, like: Tensor) -> FAMOMemory:
        """Weights of 1."""
        aux = like[1:]
        none = torch.full_like(aux, float("nan"))
        return FAMOMemory(torch.ones_like(like), torch.zeros_like(aux), none, none, *begin_moments(aux))

    def update(self, state: FAMOMemory, signals: Signals) -> tuple[Tensor, FAMOMemory]:
        """A step of the logits from the change of the losses, then weights from logits and losses."""
        losses, here = signals.losses[1:], signals.seen()[1:]
        positive = losses > 0
        if bool((here & ~positive).any()):
            warn_not_positive(self, losses[here & ~positive])
        here = here & positive
        if not bool(here.any()):
            return state.weights, state
        change = torch.where(here, self._log(state.last) - self._log(losses), state.change)
        logits, moments = self._step(state, change, here, signals.stride)
        last = torch.where(here, losses, state.last)
        met = ~last.isnan()
        shares = _softmax(logits, met) / (last.nan_to_num(0) + self.epsilon)
        alpha = met.sum() * shares / shares.sum()  # the number of tasks met so far, then K
        weights = prepend_main(torch.where(here, alpha, state.weights[1:]))
        return weights, FAMOMemory(weights, logits, last, change, *moments)

    def _step(self, state: FAMOMemory, change: Tensor, here: Tensor, stride: float) -> tuple[Tensor, Moments]:
        """The new logits [K], and Adam's moments."""
        known = ~change.isnan()
        delta, z = change.nan_to_num(0), _softmax(state.logits, known)
        slope = z * (delta - (z * delta).sum()) + self.decay * state.logits
        step, moments = adam_direction(slope, here & known, Moments(*state[4:]))
        return state.logits - self.lr * stride * step, moments

    def _log(self, losses: Tensor) -> Tensor:
        return (losses.clamp(min=0) + self.epsilon).log()


def _softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """The softmax over the entries in ``mask``; 0 for the others."""
    return logits.masked_fill(~mask, -float("inf")).softmax(0).nan_to_num(0)
