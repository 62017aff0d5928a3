"""Brings losses to a common scale, so that weights say how much a task counts, not how large its loss is."""

from typing import NamedTuple

import torch
from torch import Tensor

GROWTH = 2
"""A gradient is measured again when there have been so many times as many calls as at the last measurement."""
LARGEST = 1e12
"""No loss is multiplied or divided by more than this: one so small is rounding, not a loss in other units."""


FIRST = 3
"""So many sizes of a loss are looked at."""


class Sizes(NamedTuple):
    """What is known of the size of every loss, or of its gradient, [1 + K].

    Losses are compared by their first sizes, gradients by their means over the whole run. Later main losses, and
    recent main gradients alone, are small once few main labels are learned, and would take tasks along that still have
    much to teach.
    """

    number: Tensor
    """How many sizes were seen."""
    total: Tensor
    """Their sum."""
    last: Tensor
    """The call at which the last one was seen."""
    recent: Tensor
    """The mean of the last one and of this mean before it."""

    def add(self, new: Tensor, usable: Tensor, call: int = 0) -> "Sizes":
        """These and the ``new`` ones [1 + K] of this ``call``, as far as they are ``usable``."""
        return Sizes(
            torch.where(usable, self.number + 1, self.number),
            torch.where(usable, self.total + new, self.total),
            torch.where(usable, float(call), self.last),
            torch.where(usable, torch.where(self.number > 0, (self.recent + new) / 2, new), self.recent),
        )

    def relative(self) -> Tensor:
        """The main task's mean size divided by that of every task, [1 + K]; 1 while one of them is not known, or 0."""
        known = (self.number > 0) & (self.total > 0)
        mean = torch.where(known, self.total / self.number.clamp(min=1), 1.0)
        return torch.where(known & known[0], (mean[0] / mean).clamp(1 / LARGEST, LARGEST), torch.ones_like(mean))


def no_sizes(like: Tensor) -> Sizes:
    """Before the first measurement, for tasks as in ``like`` [1 + K]."""
    return Sizes(*[torch.zeros_like(like)] * 4)


def find_units(losses: Sizes, gradients: Sizes, same_outputs: Tensor) -> Tensor:
    r"""The factor on every loss, [1 + K]. Constant factors on losses are undone; the main loss keeps its own.

    .. math:: u_k = \overline{|L_0|} / \overline{|L_k|} \quad\text{or}\quad
        u_k = \overline{\|g_0\|} / \overline{\|g_k\|}

    A task that trains the outputs of the main one asks the same question: its loss has the same 0, and the sizes of the
    two losses can be compared. With a head of its own, a loss has a 0 of its own, and its size says nothing: 1 - cosine
    is close to 0 from the start, and still moves the network. There the lengths of gradients are compared.

    >>> ones, seen = torch.ones(3).bool(), no_sizes(torch.zeros(3))
    >>> losses = seen.add(torch.tensor([2.0, 200.0, 0.01]), ones)
    >>> gradients = seen.add(torch.tensor([2.0, 50.0, 0.5]), ones)
    >>> find_units(losses, gradients, same_outputs=torch.tensor([True, False]))
    tensor([1.0000, 0.0100, 4.0000])
    """
    by_loss, by_gradient = losses.relative(), gradients.relative()
    return torch.cat([by_loss[:1], torch.where(same_outputs, by_loss[1:], by_gradient[1:])])


class LossScales:
    """What every loss is multiplied by, beside its weight: ``aux_scale``, and its unit where losses have units."""

    def __init__(self, like: Tensor, aux_scale: float, *, in_units: bool) -> None:
        self._aux_scale, self._in_units = aux_scale, in_units
        self.restore(no_sizes(like), no_sizes(like), torch.ones_like(like[1:], dtype=torch.bool))

    def restore(self, losses: Sizes, gradients: Sizes, same_outputs: Tensor) -> None:
        """Continues from these sizes, for tasks that train the outputs of the main one where ``same_outputs`` [K]."""
        self.losses, self.gradients = losses, gradients
        self.all = torch.full_like(losses.number, self._aux_scale)
        """[1 + K]"""
        self.all[0] = 1
        if self._in_units:
            self.all = self.all * find_units(losses, gradients, same_outputs)
        self._numbers: list[float] = self.all.tolist()

    def learn(self, losses: Tensor, usable: Tensor, gradients: Tensor, due: Tensor, call: int, same: Tensor) -> None:
        """Adds the sizes of losses that are ``usable``, and the lengths of gradients that were ``due``, if finite."""
        measured = self.gradients.add(gradients, due & gradients.isfinite(), call)
        first = usable & (losses != 0) & (self.losses.number < FIRST)
        self.restore(self.losses.add(losses.abs(), first, call), measured, same)

    def are_due(self, call: int, same_outputs: Tensor) -> Tensor:
        """[1 + K] of bool: whose gradient to measure, at calls 0, 1, 2, 4, 8, ... or soon after, if there is need.

        It costs a short backward pass per task, and lengths change little from step to step.
        """
        own = ~same_outputs
        needed = torch.cat([own.any()[None], own])
        number, last = self.gradients.number, self.gradients.last
        return needed & ((number == 0) | (call >= GROWTH * last.clamp(min=0.5)))

    def recent_lengths(self) -> Tensor:
        """[1 + K]: how long the gradient of every scaled loss was of late; 0 where it is not known."""
        return self.all * self.gradients.recent

    def times(self, weights: list[float]) -> list[float]:
        """Weights [1 + K] times scales. In numbers, because it is needed at every step."""
        if self._aux_scale == 1 and not self._in_units:
            return weights
        return [weight * scale for weight, scale in zip(weights, self._numbers, strict=True)]
