"""What a method learns about one training step."""

from typing import NamedTuple

import torch
from torch import Tensor


class Signals(NamedTuple):
    """Losses and inner products of a step. Index 0 is always the main task; K is the number of auxiliary tasks.

    Entries of tasks that are missing are 0; ``present`` marks the others. Where batches hold some of the tasks each,
    the numbers come from several batches.
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
    """[1 + K] of bool; ``None`` when there is every task."""
    stride: float = 1.0
    """How many times its own step size a method should step: more than 1 where updates are rare."""
    same_outputs: Tensor | None = None
    """[K] of bool, for methods that need it: tasks that go through every parameter of the main task, its head too."""
    lengths: Tensor | None = None
    """[1 + K], where losses have units: about how long each gradient was of late; 0 where that is not known."""
    transfer: Tensor | None = None
    """[2, 1 + K], for methods that need answers: p and nu, how well those of a task fit the main examples, and chance.

    Those of the main task say how far alike examples have alike answers. See :mod:`arml.gradients.transfer`; 0 where
    answers could not be compared.
    """
    own_transfer: Tensor | None = None
    """[1 + K], with transfer: how well the answers of a task fit its own next examples, as a correlation."""
    alternatives: Tensor | None = None
    """[1 + K], with transfer: how many answers of each task exclude each other."""
    peers: Tensor | None = None
    """[2, K, K], with transfer: p and nu, how well the answers of two tasks fit each other's examples."""

    def seen(self) -> Tensor:
        """[1 + K] of bool: which tasks there are."""
        return torch.ones_like(self.losses, dtype=torch.bool) if self.present is None else self.present
