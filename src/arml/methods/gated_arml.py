"""ARML that can switch every auxiliary task off."""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.methods.arml import ARML, ARMLMemory
from arml.methods.base import Method, main_direction, prepend_main, require, steerable_tasks


class GatedMemory(NamedTuple):
    """ARML's memory, then per task [K]: the running agreement with the main one, whether it is on, and its updates."""

    weights: Tensor
    mean_square: Tensor
    updates: Tensor
    agreement: Tensor
    on: Tensor
    gathered: Tensor


@dataclass(frozen=True)
class GatedARML(Method[GatedMemory]):
    r"""ARML on those tasks whose gradient has, on balance, agreed with the main one.

    .. math:: a_k \leftarrow d\, a_k + (1 - d) \langle g_0, g_k \rangle

    Task k is on iff :math:`a_k > 0`. ARML's projected step runs on the tasks that are on, with their weights summing to
    their number. A task that comes back on starts from weight 1. With all tasks off the main task is trained alone.
    ARML itself must spend its fixed sum K on something, even when every task misleads.

    A single product says little, so a task stays on for its first ``warmup`` updates: plain ARML, while agreement is
    gathered. Ours, not in the paper.
    """

    arml: ARML = field(default_factory=ARML)
    """Settings of the step that tasks take while they are on."""
    decay: float = 0.97
    """d, how slowly past agreement is forgotten."""
    warmup: int = 30
    """Updates of a task before it can be switched off; about the memory of the agreement."""

    def __post_init__(self) -> None:
        if not 0 <= self.decay < 1:
            raise ValueError(f"GatedARML: `decay` should be in [0, 1). Got {self.decay!r}.")
        if self.warmup < 0 or self.warmup != int(self.warmup):
            raise ValueError(f"GatedARML: `warmup` should be a whole number of at least 0. Got {self.warmup!r}.")

    def init(self, like: Tensor) -> GatedMemory:
        """Every task on, with weight 1."""
        zeros = torch.zeros_like(like[1:])
        return GatedMemory(*self.arml.init(like), zeros, torch.ones_like(zeros, dtype=torch.bool), zeros)

    def directions(self, state: GatedMemory) -> Tensor:
        """c = (1, -alpha) for the step, c = e_0 for the gate."""
        return torch.cat([self.arml.directions(_arml_memory(state)), main_direction(state.weights)])

    def update(self, state: GatedMemory, signals: Signals) -> tuple[Tensor, GatedMemory]:
        """Gates from the agreement so far, then ARML's step on the tasks that are on."""
        here = steerable_tasks(signals)
        if not bool(here.any()):
            return state.weights, state
        products = require(signals.alignment, "an alignment")[1, 1:]
        agreement = torch.where(here, self.decay * state.agreement + (1 - self.decay) * products, state.agreement)
        gathered = state.gathered + here.to(state.gathered)
        on = torch.where(here, (agreement > 0) | (gathered <= self.warmup), state.on)
        alpha = state.weights[1:]
        alpha = torch.where(on, torch.where(state.on, alpha, torch.ones_like(alpha)), torch.zeros_like(alpha))
        step, memory = self.arml.step(_arml_memory(state), signals, here)
        alpha = self.arml.move(alpha, step, on & here, total=on.sum())
        weights = prepend_main(alpha)
        return weights, GatedMemory(*memory._replace(weights=weights), agreement, on, gathered)


def _arml_memory(state: GatedMemory) -> ARMLMemory:
    return ARMLMemory(state.weights, state.mean_square, state.updates)
