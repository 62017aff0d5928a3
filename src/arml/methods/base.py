"""The interface of every method: it turns losses and inner products of a step into one weight per task."""

import warnings
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.schedule import Growing

S = TypeVar("S", bound=tuple[Tensor, ...])


@dataclass(frozen=True)
class Needs:
    """What a method needs in addition to losses and directions."""

    losses: bool = True
    """``False``: the weights never change, whatever the losses are."""
    gram: bool = False
    """The whole Gram matrix."""
    norms: bool = False
    """The length of every task's gradient."""
    outputs: bool = False
    """Which tasks train the outputs of the main task."""
    answers: bool = False
    """How well the answers of tasks that train the outputs of the main task fit its examples and each other's.

    Where all tasks of a batch do, nothing else is measured, and there is no alignment.
    """
    units: bool = False
    """Auxiliary losses brought to the scale of the main loss."""
    each_batch: bool = False
    """Updates from every batch, whatever tasks it holds, instead of waiting until all tasks have been met."""
    layer: str | None = None
    """Measure on this part of the shared parameters, by name; ``None``: on all of them."""
    nearest: bool = False
    """Measure on the shared parameters next to the losses, the last shared layer: many cheap measurements."""


class Method(Protocol[S]):
    """A frozen dataclass of settings. Memory is handed in and out, so a method can be replayed and tested alone.

    Memory is a named tuple of tensors. Index 0 is the main task in everything of shape [1 + K].
    """

    def init(self, like: Tensor) -> S:
        """Memory before the first step, for tasks, dtype and device as in ``like`` [1 + K]."""
        ...

    def needs(self) -> Needs:
        """What to measure in addition to losses and directions: nothing, unless a method overrides this."""
        return Needs()

    def can_move(self, num_aux: int) -> bool:
        """Whether the weights of ``num_aux`` tasks can change at all."""
        del num_aux
        return True

    def schedule(self) -> Growing:
        """When to update, unless the caller says otherwise."""
        return Growing()

    def settle(self, average: Tensor, last: Tensor) -> Tensor:
        """The weights [1 + K] to keep once they have converged: their ``average``, not the ``last`` ones."""
        del last
        return average

    def directions(self, state: S) -> Tensor | None:
        """Directions c [D, 1 + K] to align every gradient with; ``None``: no gradients needed."""
        del state
        return None

    def update(self, state: S, signals: Signals) -> tuple[Tensor, S]:
        """The weights [1 + K] to use now, and the new memory.

        Tasks that are not present keep their weight; with no task present this returns the weights in force.
        """
        ...


class Weights(NamedTuple):
    """Memory of methods that remember no more than the weights in force."""

    weights: Tensor


def prepend_main(alpha: Tensor) -> Tensor:
    """The weights of all tasks [1 + K] from those of the auxiliary tasks [K]: the main task has weight 1."""
    return torch.cat([alpha.new_ones(1), alpha])


def steerable_tasks(signals: Signals) -> Tensor:
    """[K] of bool: auxiliary tasks that can be compared with the main task, because both are in the batch."""
    present = signals.seen()
    return present[1:] & present[0]


def main_direction(weights: Tensor) -> Tensor:
    """c = e_0: align every gradient with the main task's. [1, 1 + K]."""
    c = torch.zeros_like(weights)
    c[0] = 1
    return c.unsqueeze(0)


def cosines_with_main(signals: Signals) -> Tensor:
    """cos(g_i, g_0) of every task [1 + K], from c = e_0 and the norms; 0 where one of the two gradients is zero."""
    products, lengths = require(signals.alignment, "an alignment")[0], require(signals.norms, "norms")
    scale = lengths[0] * lengths
    return torch.where(scale > 0, products / scale, torch.zeros_like(products)).clamp(-1, 1)


def require(answer: Tensor | None, what: str) -> Tensor:
    """The measured ``answer``; raises if that part of the signals is missing."""
    if answer is None:
        raise ValueError(
            f"The method asked for {what}, but the signals hold none. Measure what the method says it needs."
        )
    return answer


def check_positive(method: object, **settings: float) -> None:
    """Raises unless every setting is a positive number."""
    for name, value in settings.items():
        if not 0 < value < float("inf"):
            raise ValueError(f"{type(method).__name__}: `{name}` should be a positive number. Got {value!r}.")


def check_decay(method: object, **settings: float) -> None:
    """Raises unless every setting is in [0, 1)."""
    for name, value in settings.items():
        if not 0 <= value < 1:
            raise ValueError(f"{type(method).__name__}: `{name}` should be in [0, 1). Got {value!r}.")


def warn_not_positive(method: object, losses: Tensor) -> None:
    """Warns that ``losses`` of auxiliary tasks have no logarithm."""
    given = ", ".join(f"{loss:.4g}" for loss in losses.tolist())
    warnings.warn(
        f"{type(method).__name__} takes the logarithm of auxiliary losses, but got {given}. Such a task keeps its "
        "weight. Shift the loss so that it is positive, for example 1 - cosine instead of -cosine.",
        stacklevel=3,
    )


def check_step_limit(method: object, max_step: float) -> None:
    """Raises unless ``max_step`` is positive; infinity is allowed."""
    if not max_step > 0:
        raise ValueError(
            f"{type(method).__name__}: `max_step` should be a positive number, or math.inf for no limit. "
            f"Got {max_step!r}."
        )


def shorten_step(step: Tensor, longest: float) -> Tensor:
    """``step``, scaled as a whole if its largest entry exceeds ``longest``."""
    return step * (longest / step.abs().max()).clamp(max=1)
