"""Brings losses to a common size, so that weights say how much a task counts, not how large its loss is."""

from typing import NamedTuple

import torch
from torch import Tensor

MEMORY = 20
"""The length of a gradient is averaged over about this many measurements."""
GROWTH = 2
"""A task is measured again when there have been so many times as many calls as at the last measurement."""
LARGEST = 1e12
"""No loss is multiplied or divided by more than this: one so flat is rounding, not a loss in other units."""


class Lengths(NamedTuple):
    """What is known of the length ||g_i|| of every gradient, [1 + K]. Each one counts 1 - 1 / MEMORY of the next."""

    number: Tensor
    """How many lengths were seen."""
    total: Tensor
    """Their sum."""
    last: Tensor
    """The call at which the last one was measured."""


def no_lengths(like: Tensor) -> Lengths:
    """Before the first measurement, for tasks as in ``like`` [1 + K]."""
    return Lengths(*[torch.zeros_like(like)] * 3)


def remember_lengths(lengths: Lengths, new: Tensor, usable: Tensor, call: int = 0) -> Lengths:
    """``lengths`` and the ``new`` ones [1 + K] of this ``call``, as far as they are ``usable``."""
    keep = 1 - 1 / MEMORY
    return Lengths(
        torch.where(usable, keep * lengths.number + 1, lengths.number),
        torch.where(usable, keep * lengths.total + new, lengths.total),
        torch.where(usable, float(call), lengths.last),
    )


def find_units(lengths: Lengths) -> Tensor:
    r"""The factor on every loss, [1 + K]: :math:`u_k = \overline{\|g_0\|} / \overline{\|g_k\|}`, means over time.

    So a constant factor on an auxiliary loss is undone, and one on all losses changes no unit. The size of the loss
    itself would do the same for factors, but it depends on where its 0 is, and says nothing about how much it can move
    the network: 1 - cosine is close to 0 from the start. The main loss keeps its own unit. The unit is 1 while the
    length of the task's or the main gradient is not known, or 0.

    >>> lengths = remember_lengths(no_lengths(torch.zeros(3)), torch.tensor([2.0, 200.0, 0.5]), torch.ones(3).bool())
    >>> find_units(lengths)
    tensor([1.0000, 0.0100, 4.0000])
    """
    known = (lengths.number > 0) & (lengths.total > 0)
    mean = torch.where(known, lengths.total / lengths.number.clamp(min=1), 1.0)
    return torch.where(known & known[0], (mean[0] / mean).clamp(1 / LARGEST, LARGEST), torch.ones_like(mean))


class LossScales:
    """What every loss is multiplied by, beside its weight: ``aux_scale``, and its unit where losses have units."""

    def __init__(self, like: Tensor, aux_scale: float, *, in_units: bool) -> None:
        self._aux_scale, self._in_units = aux_scale, in_units
        self.restore(no_lengths(like))

    def restore(self, lengths: Lengths) -> None:
        """Continues from these ``lengths``."""
        self.lengths = lengths
        self.all = torch.full_like(lengths.number, self._aux_scale)
        """[1 + K]"""
        self.all[0] = 1
        if self._in_units:
            self.all = self.all * find_units(lengths)
        self._numbers: list[float] = self.all.tolist()

    def are_due(self, call: int) -> Tensor:
        """[1 + K] of bool: the tasks to measure if they are there, at calls 0, 1, 2, 4, 8, ... or soon after.

        It costs a short backward pass per task, and lengths change little from step to step.
        """
        number, _, last = self.lengths
        return (number == 0) | (call >= GROWTH * last.clamp(min=0.5))

    def learn(self, new: Tensor, usable: Tensor, call: int) -> None:
        """Adds the ``new`` lengths of tasks that are ``usable``, where they are finite."""
        self.restore(remember_lengths(self.lengths, new, usable & new.isfinite(), call))

    def times(self, weights: list[float]) -> list[float]:
        """Weights [1 + K] times scales. In numbers, because it is needed at every step."""
        if self._aux_scale == 1 and not self._in_units:
            return weights
        return [weight * scale for weight, scale in zip(weights, self._numbers, strict=True)]
