"""Keeps the gradients of single tasks for the training step, where an engine holds all of them anyway."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from torch import Tensor


class TaskGradients(NamedTuple):
    """The gradients of all tasks on the parameters that were measured."""

    shared: Sequence[Tensor]
    parts: Sequence[Sequence[Tensor]]
    """One gradient per task: tensors in the order of ``shared``."""
    touched: list[list[bool]]
    """Which parameters each task depends on: one list per task, in the order of ``shared``."""

    def measured(self) -> list[bool]:
        """Which tasks have a gradient: those that were not missing and not left out."""
        return [any(task) for task in self.touched]


class Keeper:
    """Holds the last gradients of all tasks that were computed while it was active."""

    def __init__(self) -> None:
        self.last: TaskGradients | None = None
        self.repeatable = True
        """Whether a sum of these gradients stands for a backward pass: not where that pass does more than add."""


_keeper: ContextVar[Keeper | None] = ContextVar("keeper", default=None)


@contextmanager
def keep_gradients() -> Iterator[Keeper]:
    """Inside, engines that hold the gradients of all tasks hand them to the keeper."""
    keeper = Keeper()
    token = _keeper.set(keeper)
    try:
        yield keeper
    finally:
        _keeper.reset(token)


def hand_over(gradients: TaskGradients) -> None:
    """Gives ``gradients`` to the active keeper, if there is one."""
    keeper = _keeper.get()
    if keeper is not None:
        keeper.last = gradients


def forbid_reuse() -> None:
    """Marks the gradients of this update: their sum does not stand for a backward pass."""
    keeper = _keeper.get()
    if keeper is not None:
        keeper.repeatable = False
