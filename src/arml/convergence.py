"""Decides when the weights have settled."""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

_ROWS = 16
"""Blocks that are remembered. When all are full, pairs are merged, and blocks are twice as long from then on."""
_STUDENT = {12: 2.776, 16: 2.447}
"""Blocks at which the history is judged, and the 97.5 % quantile of Student's t for half as many less 2."""


class WindowState(NamedTuple):
    """The history of the weights since they first moved, in at most 16 blocks of equally many updates."""

    start: Tensor
    """The weights before the first update, [1 + K]."""
    totals: Tensor
    """Sums of the weights over each block, [16, 1 + K]."""
    reach: Tensor
    """The widest range that any weight had covered by the end of each block, [16]."""
    lowest: Tensor
    """The smallest weights so far, [1 + K]."""
    highest: Tensor
    """The largest weights so far, [1 + K]."""
    updates: Tensor
    """Updates since the weights first moved."""
    length: Tensor
    """Updates in a block."""
    average: Tensor
    """Average over the second half of the history, [1 + K], when it was last judged; NaN before."""
    settled: Tensor
    """Whether the weights have converged; once true, it stays true."""


def initial_state(weights: Tensor) -> WindowState:
    """The state before the first update, at which ``weights`` [1 + K] are in force."""
    zero = torch.zeros_like(weights[0])
    totals = weights.new_zeros(_ROWS, len(weights))
    average = torch.full_like(weights, float("nan"))
    return WindowState(weights, totals, totals[:, 0], weights, weights, zero, zero + 1, average, zero.bool())


@dataclass(frozen=True)
class Convergence:
    r"""Weights have settled when the way that is left is small, compared with the range they have covered.

    The history of n updates is cut into quarters. With the averages :math:`q_3, q_4` of the last two, the weights
    :math:`w_0` at the start, and for every task

    .. math:: \bar w = \frac{q_3 + q_4}{2}, \qquad W = |\bar w - w_0|, \qquad u = |q_4 - q_3| + 2 t s,

    an even drift has :math:`W = 3 |q_4 - q_3|`, and an exponential approach has, closely,

    .. math:: e = \frac{u W}{W - 3 u}

    still to go from :math:`\bar w`. Here s is the standard error of :math:`\bar w`, from the scatter of 6 or 8 blocks
    of updates inside the two quarters, and t the 97.5 % quantile of Student's distribution. The weights have settled
    when for every task

    .. math:: e + t s \le \text{tolerance} \cdot R,

    with R the widest range of any weight in the first half of the history, start included. If W + t s and u are both
    below tolerance * R, the way counts as none, e = 0: weights that only fluctuate around their start settle, too.
    :math:`\bar w` is used from then on.

    What is promised: the weights in use are further than tolerance * R from their limit in at most 5 % of runs. This
    holds for weights that only fluctuate, and for an exponential approach with any time constant under noise of up to
    0.3 of the way, correlated or not. With little noise that is 95 % of the way. An even drift never settles unless
    noise hides it. A slow part of the way behind a faster, larger one is not foreseen.

    The history is judged each time it has grown by a half or a third. It begins when the weights first move, so weights
    that nothing has moved yet never settle.
    """

    window: int = 50
    """Updates per quarter, at least, when the history is judged for the first time."""
    tolerance: float = 0.05
    """Largest error of the settled weights, as a share of the range that the weights have covered."""
    at_most: int | None = field(default=None, kw_only=True)
    """Updates after which the weights count as settled anyway, with no promise; ``None``: no limit."""

    def __post_init__(self) -> None:
        if self.window < 1 or self.window != int(self.window):
            raise ValueError(f"Convergence: `window` should be a whole number of at least 1. Got {self.window!r}.")
        if self.at_most is not None and (self.at_most < 1 or self.at_most != int(self.at_most)):
            raise ValueError(f"Convergence: `at_most` should be a whole number of at least 1. Got {self.at_most!r}.")
        if not 0 < self.tolerance < 1:
            raise ValueError(f"Convergence: `tolerance` should lie between 0 and 1. Got {self.tolerance!r}.")

    def update(self, state: WindowState, weights: Tensor) -> WindowState:
        """The state after one more update gave ``weights`` [1 + K]."""
        if not bool(state.updates) and torch.equal(weights, state.start):
            return state
        state = _add(state, weights)
        if self.at_most is not None and state.updates >= self.at_most:
            return state._replace(average=_late_average(state), settled=torch.ones_like(state.settled))
        blocks, rest = divmod(int(state.updates), int(state.length))
        if rest or blocks not in _STUDENT:
            return state
        if state.updates >= 4 * self.window:
            state = self._judge(state, blocks)
        return _merge_pairs(state) if blocks == _ROWS else state

    def _judge(self, state: WindowState, blocks: int) -> WindowState:
        half, quarter, t = blocks // 2, blocks // 4, _STUDENT[blocks]
        late = (state.totals[half:blocks] / state.length).view(2, quarter, -1)
        q3, q4 = late.mean(1)
        average = (q3 + q4) / 2
        # Noise that is correlated over whole blocks makes s too small, but then it also moves q4 away from q3.
        s = ((late - late.mean(1, keepdim=True)).square().sum((0, 1)) / (half - 2) / half).sqrt()
        way, drift = (average - state.start).abs(), (q4 - q3).abs() + 2 * t * s
        # The range of the first half only: a weight that begins to move now must not be its own measure.
        allowed = self.tolerance * state.reach[half - 1]
        remaining = torch.where(3 * drift < way, drift * way / (way - 3 * drift), float("inf"))
        no_way = (way + t * s <= allowed) & (drift <= allowed)
        error = torch.where(no_way, 0.0, remaining) + t * s
        return state._replace(average=average, settled=(error <= allowed).all())


def _add(state: WindowState, weights: Tensor) -> WindowState:
    lowest, highest = torch.minimum(state.lowest, weights), torch.maximum(state.highest, weights)
    row = int(state.updates) // int(state.length)
    totals, reach = state.totals.clone(), state.reach.clone()
    totals[row] += weights
    reach[row] = (highest - lowest).max()
    return state._replace(totals=totals, reach=reach, lowest=lowest, highest=highest, updates=state.updates + 1)


def _late_average(state: WindowState) -> Tensor:
    """The average over the second half, in whole blocks, of a history that may end inside a block."""
    skipped = int(state.updates) // int(state.length) // 2
    return state.totals[skipped:].sum(0) / (state.updates - skipped * state.length)


def _merge_pairs(state: WindowState) -> WindowState:
    totals, reach = torch.zeros_like(state.totals), torch.zeros_like(state.reach)
    totals[: _ROWS // 2] = state.totals[::2] + state.totals[1::2]
    reach[: _ROWS // 2] = state.reach[1::2]
    return state._replace(totals=totals, reach=reach, length=2 * state.length)
