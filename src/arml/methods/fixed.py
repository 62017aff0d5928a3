"""Weights chosen by hand."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.methods.base import Method, Needs, Weights, prepend_main


@dataclass(frozen=True)
class Fixed(Method[Weights]):
    """Given weights, one per auxiliary task in their order; the main task has weight 1.

    For grid searches and oracles. Weights of 0 train the main task alone.
    """

    weights: Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", tuple(float(w) for w in self.weights))
        if not all(0 <= w < float("inf") for w in self.weights):
            raise ValueError(f"Fixed: weights should be numbers of at least 0. Got {self.weights}.")

    def needs(self) -> Needs:
        """Nothing."""
        return Needs(losses=False)

    def init(self, like: Tensor) -> Weights:
        """The given weights."""
        if len(self.weights) != len(like) - 1:
            raise ValueError(
                f"Fixed holds {len(self.weights)} weights {self.weights}, but there are {len(like) - 1} auxiliary "
                "tasks. Give one weight for each of them; the main task's weight is always 1."
            )
        return Weights(prepend_main(torch.tensor(self.weights, dtype=like.dtype, device=like.device)))

    def update(self, state: Weights, signals: Signals) -> tuple[Tensor, Weights]:
        """The same weights."""
        del signals
        return state.weights, state
