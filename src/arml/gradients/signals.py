"""What a method learns about one training step."""

from typing import NamedTuple

import torch
from torch import Tensor


class Signals(NamedTuple):
    """Losses and inner products of a step. Index 0 is always the main task; K is the number of auxiliary tasks.

    Entries of tasks that are missing from the batch are 0; ``present`` marks the others.
    """

    losses: Tensor
    """[1 + K], detached."""
    alignment: Tensor | None = None
    """[D, 1 + K]: <g_i, sum_j c_dj g_j> for the D directions c that the method asked for."""
    gram: Tensor | None = None
    """[1 + K, 1 + K]: <g_i, g_j>, for methods that need it."""
    norms: Tensor | None = None
    """[1 + K]: ||g_i||, for methods that need only norms."""
    present: Tensor | None = None
    """[1 + K] of bool; ``None`` when every task is in the batch."""
    stride: float = 1.0
    """How many times its own step size a method should step: more than 1 where updates are rare."""

    def presence(self) -> Tensor:
        """[1 + K] of bool: which tasks the batch holds."""
        return torch.ones_like(self.losses, dtype=torch.bool) if self.present is None else self.present
