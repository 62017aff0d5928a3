r"""Brings losses into comparable units, so that weights say how much a task counts, not how large its loss is."""

from typing import NamedTuple

import torch
from torch import Tensor

MEMORY = 20
"""Updates over which the size of a loss is averaged, each older one counting a little less."""


class Sizes(NamedTuple):
    """Number and sum of the sizes of every loss so far, [1 + K]; older ones count less."""

    number: Tensor
    total: Tensor


def no_sizes(like: Tensor) -> Sizes:
    """Before the first update, for tasks as in ``like`` [1 + K]."""
    return Sizes(torch.zeros_like(like), torch.zeros_like(like))


def remember_sizes(sizes: Sizes, losses: Tensor, usable: Tensor) -> Sizes:
    """``sizes`` with the losses [1 + K] of those tasks that are ``usable`` at this update."""
    keep = 1 - 1 / MEMORY
    return Sizes(
        torch.where(usable, keep * sizes.number + 1, sizes.number),
        torch.where(usable, keep * sizes.total + losses.abs(), sizes.total),
    )


def find_units(sizes: Sizes) -> Tensor:
    r"""What to multiply every loss by, [1 + K]: :math:`u_k = \overline{|L_0|} / \overline{|L_k|}`; 1 where unknown.

    A constant factor on an auxiliary loss is undone exactly, and one on all losses changes nothing.

    >>> sizes = remember_sizes(no_sizes(torch.zeros(3)), torch.tensor([2.0, 200.0, 0.5]), torch.ones(3).bool())
    >>> find_units(sizes)
    tensor([1.0000, 0.0100, 4.0000])
    """
    known = (sizes.number > 0) & (sizes.total > 0)
    mean = torch.where(known, sizes.total / sizes.number.clamp(min=1), 1.0)
    return torch.where(known & known[0], mean[0] / mean, torch.ones_like(mean))
