"""Decides when the weights have settled."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


class WindowState(NamedTuple):
    """The averages of the weights over windows of updates."""

    total: Tensor
    """Sum of the weights over the current window, [1 + K]."""
    updates: Tensor
    """Updates in the current window."""
    average: Tensor
    """Average over the last full window, [1 + K]; NaN before the first."""
    path: Tensor
    """Sum of all changes of the average from window to window."""
    settled: Tensor
    """Whether the weights have converged; once true, it stays true."""


def initial_state(like: Tensor) -> WindowState:
    """The state before the first update, for weights like ``like`` [1 + K]."""
    zero = torch.zeros_like(like[0])
    return WindowState(torch.zeros_like(like), zero, torch.full_like(like, float("nan")), zero, zero.bool())


@dataclass(frozen=True)
class Convergence:
    r"""Weights have settled when a whole window of updates hardly moves their average any more.

    With :math:`\bar w_n` the average over the n-th window and the change
    :math:`\Delta_n = \max_k |\bar w_{n,k} - \bar w_{n-1,k}|`, they have converged at the first n >= 2 with

    .. math:: \Delta_n \le \text{tolerance} \cdot (\Delta_2 + \dots + \Delta_n).

    Comparing with the path so far, not with a fixed number, keeps a small learning rate from looking like convergence.
    Weights that do not move at all settle after two windows; weights that only fluctuate, after about 1 / tolerance
    windows. From then on the last average is used: it carries less noise than any single update.
    """

    window: int = 50
    """Updates per window."""
    tolerance: float = 0.05
    """Largest share of the whole path that the last window may add."""

    def __post_init__(self) -> None:
        if self.window < 1 or self.window != int(self.window):
            raise ValueError(f"Convergence: `window` should be a whole number of at least 1. Got {self.window!r}.")
        if not 0 < self.tolerance < 1:
            raise ValueError(f"Convergence: `tolerance` should lie between 0 and 1. Got {self.tolerance!r}.")

    def update(self, state: WindowState, weights: Tensor) -> WindowState:
        """The state after one more update gave ``weights`` [1 + K]."""
        total, updates = state.total + weights, state.updates + 1
        if updates < self.window:
            return state._replace(total=total, updates=updates)
        average = total / updates
        change = (average - state.average).abs().max()  # NaN, and so never settled, after the first window
        path = state.path + change.nan_to_num(0.0)
        settled = change <= self.tolerance * path
        return WindowState(torch.zeros_like(total), torch.zeros_like(updates), average, path, settled)
