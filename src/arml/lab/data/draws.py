"""Random numbers for the examples of a batch, and the part of a batch that one of several processes has.

Every process draws for the whole batch from the same generator and keeps its own part. So the generators of all
processes stay equal, and a run continues from its checkpoint on any number of processes.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import torch
from torch import Tensor


class Part(NamedTuple):
    """Which part of every batch a process has; all of it by default."""

    rank: int = 0
    of: int = 1


_part: ContextVar[Part] = ContextVar("part", default=Part())  # noqa: B039 -- a tuple cannot change


_sizes: ContextVar[tuple[int, ...]] = ContextVar("sizes", default=())


@contextmanager
def draw_part(part: Part) -> Iterator[None]:
    """Inside, batches and random numbers are those of one part."""
    token = _part.set(part)
    try:
        yield
    finally:
        _part.reset(token)


def present_part() -> Part:
    """The part that is drawn at the moment."""
    return _part.get()


@contextmanager
def draw_for(*sizes: int) -> Iterator[None]:
    """Inside, random numbers are for several batches one after the other; this process has ``sizes`` examples of each.

    >>> def draw():
    ...     return draw_integers(0, 99, 3, torch.Generator().manual_seed(0))
    >>> torch.randint(0, 100, [6], generator=torch.Generator().manual_seed(0))  # 2 are for the first batch
    tensor([44, 39, 33, 60, 63, 79])
    >>> with draw_for(1, 2), draw_part(Part(0, of=2)):
    ...     draw()
    tensor([44, 33, 60])
    >>> with draw_for(1, 2), draw_part(Part(1, of=2)):
    ...     draw()
    tensor([39, 63, 79])
    """
    token = _sizes.set(sizes)
    try:
        yield
    finally:
        _sizes.reset(token)


def take_part(rows: Tensor) -> Tensor:
    """The part of ``rows`` [B, ...] that this process has: equally many for each.

    >>> with draw_part(Part(rank=1, of=2)):
    ...     take_part(torch.arange(6))
    tensor([3, 4, 5])
    """
    of, sizes = _part.get().of, _sizes.get()
    if of == 1:
        return rows
    batches = rows.split([of * size for size in sizes]) if of * sum(sizes) == len(rows) and sizes else (rows,)
    return torch.cat([_take_part(batch) for batch in batches])


def _take_part(rows: Tensor) -> Tensor:
    rank, of = _part.get()
    if len(rows) % of:
        raise ValueError(
            f"{of} processes share every batch equally, and {len(rows)} examples cannot be divided by {of}. Choose "
            f"batch sizes that are multiples of {of}, or another number of processes."
        )
    size = len(rows) // of
    return rows[rank * size : (rank + 1) * size]


def draw_uniform(shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """Numbers from 0 to 1 for the examples of this part, [B, ...], on the device of the generator."""
    return take_part(torch.rand(_whole(shape), generator=generator, device=generator.device))


def draw_normal(shape: Sequence[int], generator: torch.Generator, dtype: torch.dtype | None = None) -> Tensor:
    """Normal numbers for the examples of this part, [B, ...], on the device of the generator."""
    return take_part(torch.randn(_whole(shape), generator=generator, device=generator.device, dtype=dtype))


def draw_integers(lowest: int, highest: int, count: int, generator: torch.Generator) -> Tensor:
    """Whole numbers from ``lowest`` to ``highest`` for the examples of this part, [B]."""
    drawn = torch.randint(lowest, highest + 1, _whole((count,)), generator=generator, device=generator.device)
    return take_part(drawn)


def _whole(shape: Sequence[int]) -> list[int]:
    """The shape for the examples of all processes."""
    return [shape[0] * _part.get().of, *shape[1:]]
