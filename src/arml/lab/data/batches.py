"""Endless shuffled batches of indices, which can be stopped and continued exactly."""

from typing import Any

import torch
from torch import Tensor


class Sampler:
    """Draws batches from a pool of indices, every epoch in a new order.

    No index is left out: a batch that reaches the end of an epoch goes on in the next one, and a batch larger than the
    pool goes through it several times.

    >>> sampler = Sampler(torch.tensor([10, 11, 12]), batch_size=2, seed=0)
    >>> torch.cat([next(sampler) for _ in range(3)])
    tensor([12, 10, 11, 12, 11, 10])
    """

    def __init__(self, pool: Tensor, batch_size: int, seed: int) -> None:
        if pool.ndim != 1 or pool.dtype != torch.int64 or not len(pool):
            raise ValueError(
                f"`pool` should be at least one index, shape [N], int64. Got shape {tuple(pool.shape)}, {pool.dtype}."
            )
        if batch_size < 1:
            raise ValueError(f"`batch_size` should be at least 1. Got {batch_size}.")
        self.pool = pool
        self.batch_size = batch_size
        self._generator = torch.Generator().manual_seed(seed)
        self._order = self._shuffled()
        self._position = 0

    def next(self) -> Tensor:
        """The next ``batch_size`` indices."""
        parts: list[Tensor] = []
        missing = self.batch_size
        while missing:
            if self._position == len(self._order):
                self._order, self._position = self._shuffled(), 0
            part = self._order[self._position : self._position + missing]
            parts.append(part)
            self._position += len(part)
            missing -= len(part)
        return self.pool[torch.cat(parts)]

    def __iter__(self) -> "Sampler":
        return self

    def __next__(self) -> Tensor:
        return self.next()

    def state_dict(self) -> dict[str, Any]:
        """Where the sampler is: a sampler of the same pool and batch size goes on from it exactly."""
        return {"generator": self._generator.get_state(), "order": self._order.clone(), "position": self._position}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from ``state``."""
        if len(state["order"]) != len(self.pool):
            raise ValueError(
                f"The state belongs to a pool of {len(state['order'])} indices, this sampler has {len(self.pool)}. "
                "Make the sampler with the same split as before."
            )
        self._generator.set_state(state["generator"])
        self._order, self._position = state["order"].clone(), state["position"]

    def _shuffled(self) -> Tensor:
        return torch.randperm(len(self.pool), generator=self._generator)
