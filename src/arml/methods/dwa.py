"""Dynamic weight average."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.methods.base import Method, check_positive, prepend_main


class DWAMemory(NamedTuple):
    """The current weights, then what is known about the losses of every auxiliary task [K]."""

    weights: Tensor
    total: Tensor
    """Sum over the present window."""
    number: Tensor
    """Updates in the present window."""
    last: Tensor
    """Mean over the last window; NaN: none yet."""
    before: Tensor
    """Mean over the window before it."""


@dataclass(frozen=True)
class DWA(Method[DWAMemory]):
    r"""Gives more weight to tasks whose loss falls slowly.

    .. math:: r_k = \frac{L_k^{last}}{L_k^{before}}, \qquad w_k = K \frac{\exp(r_k / T)}{\sum_j \exp(r_j / T)}

    with mean losses of the last window of updates and of the one before it. Liu et al., *End-to-End Multi-Task Learning
    with Attention*, CVPR 2019, where a window is an epoch; a method sees no epochs. Until a task has two windows,
    :math:`r_k = 1`, as in the paper. The paper treats all tasks alike; here the main task has weight 1 and the rule
    shares out the sum K among the auxiliary tasks.

    A mean loss that is not positive has no rate: :math:`r_k = 1`. Tasks that are missing keep their weight and their
    rate; the sum is K again once all tasks have been present.
    """

    temperature: float = 2.0
    """T: the higher, the more equal the weights. 2 is the paper's."""
    window: int = 25
    """Updates of a task over which its losses are averaged; the number of batches of an epoch is the paper's."""

    def __post_init__(self) -> None:
        check_positive(self, temperature=self.temperature)
        if self.window < 1 or self.window != int(self.window):
            raise ValueError(f"DWA: `window` should be a whole number of at least 1. Got {self.window!r}.")

    def can_move(self, num_aux: int) -> bool:
        """One weight is given by the sum."""
        return num_aux > 1

    def init(self, like: Tensor) -> DWAMemory:
        """Weights of 1."""
        zeros, none = torch.zeros_like(like[1:]), torch.full_like(like[1:], float("nan"))
        return DWAMemory(torch.ones_like(like), zeros, zeros, none, none)

    def update(self, state: DWAMemory, signals: Signals) -> tuple[Tensor, DWAMemory]:
        """Adds the losses to their windows, then weights the tasks that are present by the rates of all tasks."""
        here = signals.seen()[1:]
        if not bool(here.any()):
            return state.weights, state
        total = state.total + torch.where(here, signals.losses[1:], torch.zeros_like(state.total))
        number = state.number + here.to(state.number)
        ended = here & (number >= self.window)
        before = torch.where(ended, state.last, state.before)
        last = torch.where(ended, total / number, state.last)
        shares = torch.softmax(self._rates(last, before) / self.temperature, 0)
        weights = prepend_main(torch.where(here, len(shares) * shares, state.weights[1:]))
        return weights, DWAMemory(weights, total.masked_fill(ended, 0), number.masked_fill(ended, 0), last, before)

    def _rates(self, last: Tensor, before: Tensor) -> Tensor:
        """r [K]."""
        rates = last / before
        known = (last > 0) & (before > 0) & rates.isfinite()  # comparisons with NaN are false
        return torch.where(known, rates, torch.ones_like(rates))
