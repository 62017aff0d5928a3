"""Gradient magnitudes of auxiliary tasks, adapted to the main task's."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.methods.base import Method, Needs, check_decay, prepend_main, require, steerable_tasks

Strategy: TypeAlias = Literal["both", "shrink", "grow"]


class MetaBalanceMemory(NamedTuple):
    """The current weights, the running mean of every norm, and how many norms it holds; [1 + K] each."""

    weights: Tensor
    mean: Tensor
    updates: Tensor


@dataclass(frozen=True)
class MetaBalance(Method[MetaBalanceMemory]):
    r"""Brings the auxiliary gradients to the length of the main one, by a share r of the way.

    .. math::
        m_i \leftarrow d\, m_i + (1 - d) \|g_i\|, \qquad w_k = r\, \frac{m_0}{m_k} + (1 - r)

    with :math:`m_i / (1 - d^n)` in place of :math:`m_i` after n norms. He et al., *MetaBalance: Improving Multi-Task
    Recommendations via Adapting Gradient Magnitudes of Auxiliary Tasks*, WWW 2022. Paper and release have one factor
    per task and parameter tensor; a weight of a loss is one factor for all of them, so norms are over all
    shared parameters, or over ``layer``. The release does not correct the means for their start at 0: without missing
    tasks the corrections cancel.

    A task whose gradient has always been zero keeps its weight.
    """

    relax: float = 0.7
    """r: 0 leaves the weights at 1, 1 makes all gradients as long as the main one. 0.7 is the release's."""
    decay: float = 0.9
    """d, how slowly past norms are forgotten. 0.9 is the paper's."""
    strategy: Strategy = "both"
    """``"shrink"`` only shortens longer gradients, ``"grow"`` only lengthens shorter ones: strategies A and B of the
    paper; ``"both"`` is C, and the release."""
    layer: str | None = None
    """Measure the norms on this part of the shared parameters, by name; ``None``: on all of them."""

    def __post_init__(self) -> None:
        check_decay(self, decay=self.decay)
        if not 0 <= self.relax <= 1:
            raise ValueError(f"MetaBalance: `relax` should be in [0, 1]. Got {self.relax!r}.")
        if self.strategy not in get_args(Strategy):
            raise ValueError(f"MetaBalance: `strategy` should be one of {get_args(Strategy)}. Got {self.strategy!r}.")

    def needs(self) -> Needs:
        """The norms, on ``layer``."""
        return Needs(norms=True, layer=self.layer)

    def init(self, like: Tensor) -> MetaBalanceMemory:
        """Weights of 1."""
        return MetaBalanceMemory(torch.ones_like(like), torch.zeros_like(like), torch.zeros_like(like))

    def update(self, state: MetaBalanceMemory, signals: Signals) -> tuple[Tensor, MetaBalanceMemory]:
        """The weights of the tasks that are present, from the mean lengths of their gradients so far."""
        here, seen = steerable_tasks(signals), signals.seen()
        if not bool(here.any()):
            return state.weights, state
        lengths = require(signals.norms, "norms")
        mean = torch.where(seen, self.decay * state.mean + (1 - self.decay) * lengths, state.mean)
        updates = state.updates + seen.to(state.updates)
        corrected = mean / (1 - self.decay ** updates.clamp(min=1))
        ratio = corrected[0] / corrected[1:]
        usable = here & ratio.isfinite()
        if self.strategy != "both":
            ratio = ratio.clamp(max=1) if self.strategy == "shrink" else ratio.clamp(min=1)
        alpha = torch.where(usable, self.relax * ratio + (1 - self.relax), state.weights[1:])
        weights = prepend_main(alpha)
        return weights, MetaBalanceMemory(weights, mean, updates)
