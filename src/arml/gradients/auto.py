"""Which engine answers, and what happens where one does not work."""

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor

from arml.gradients.backward import Engine, Losses, double_backward, one_by_one, pairwise


class Auto:
    """The cheapest engine that works here; what fails once is not tried again, and one warning says so.

    Few tasks: :func:`pairwise`. More: :func:`double_backward`, or, where an operation has no second derivative (flash
    attention, compiled graphs), :func:`one_by_one`. Engines made from a closure come first.
    """

    def __init__(self) -> None:
        self._failed: set[str] = set()

    def __call__(
        self, losses: Losses, shared: Sequence[Tensor], directions: Tensor, *, first: Sequence[Engine] = ()
    ) -> Tensor:
        """A [D, 1 + K]; see :data:`arml.gradients.backward.Engine`."""
        by_graph: list[Engine] = [pairwise] if len(losses) <= 3 else [double_backward, one_by_one]
        *attempts, last = [*first, *by_graph]
        for engine in attempts:
            if _name(engine) in self._failed:
                continue
            try:
                return engine(losses, shared, directions)
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:
                self._give_up(engine, error)
        return last(losses, shared, directions)

    def _give_up(self, engine: Engine, error: RuntimeError) -> None:
        self._failed.add(_name(engine))
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        warnings.warn(
            f"Inner products of task gradients: {_name(engine)} does not work here and is not tried again ({reason}). "
            "Another way is used: same numbers, more time.",
            stacklevel=2,
        )


def _name(engine: Engine) -> str:
    return getattr(engine, "__name__", type(engine).__name__)
