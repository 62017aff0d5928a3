"""Brings losses to a common size, so that weights say how much a task counts, not how large its loss is."""

from typing import NamedTuple

import torch
from torch import Tensor

MEMORY = 20
"""The size of a loss is averaged over about this many updates."""
LARGEST = 1e12
"""No loss is multiplied or divided by more than this: one so small is rounding, not a loss in other units."""


class Sizes(NamedTuple):
    """What is known of the size |L_i| of every loss, [1 + K]. Each update counts 1 - 1 / MEMORY of the next one."""

    number: Tensor
    """How many sizes were seen."""
    total: Tensor
    """Their sum."""


def no_sizes(like: Tensor) -> Sizes:
    """Before the first update, for tasks as in ``like`` [1 + K]."""
    return Sizes(torch.zeros_like(like), torch.zeros_like(like))


def remember_sizes(sizes: Sizes, losses: Tensor, usable: Tensor) -> Sizes:
    """``sizes`` and those of the ``losses`` [1 + K] at this update, as far as they are ``usable``."""
    keep = 1 - 1 / MEMORY
    return Sizes(
        torch.where(usable, keep * sizes.number + 1, sizes.number),
        torch.where(usable, keep * sizes.total + losses.abs(), sizes.total),
    )


def find_units(sizes: Sizes) -> Tensor:
    r"""The factor on every loss, [1 + K]: :math:`u_k = \overline{|L_0|} / \overline{|L_k|}`, with means over updates.

    So a constant factor on an auxiliary loss is undone, and one on all losses changes no unit. The main loss keeps its
    own. The unit is 1 while the size of the task or of the main loss is not known, or 0.

    >>> sizes = remember_sizes(no_sizes(torch.zeros(3)), torch.tensor([2.0, 200.0, 0.5]), torch.ones(3).bool())
    >>> find_units(sizes)
    tensor([1.0000, 0.0100, 4.0000])
    """
    known = (sizes.number > 0) & (sizes.total > 0)
    mean = torch.where(known, sizes.total / sizes.number.clamp(min=1), 1.0)
    return torch.where(known & known[0], (mean[0] / mean).clamp(1 / LARGEST, LARGEST), torch.ones_like(mean))
