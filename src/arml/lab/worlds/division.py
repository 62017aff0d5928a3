"""Which examples of the main task are labelled, which are tested, and which the auxiliary tasks may use."""

import zlib
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class Division(NamedTuple):
    """Indices into a pool, each in one part."""

    few: Tensor
    """The labelled examples of the main task."""
    validation: Tensor
    test: Tensor
    rest: Tensor
    """For auxiliary tasks on examples of the same pool."""


def generator_for(seed: int, purpose: str) -> torch.Generator:
    """Random numbers for one purpose. Each has its own, so that a new purpose does not change the others."""
    entropy = [seed, zlib.crc32(purpose.encode())]
    return torch.Generator().manual_seed(int(np.random.SeedSequence(entropy).generate_state(1)[0]))


def divide_pool(y: Tensor, num_classes: int, *, labels: int, validation: int, test: int, seed: int) -> Division:
    """Draws the parts at random. Labelled examples are balanced over the classes; numbers are drawn as they come.

    >>> divide_pool(torch.tensor([0, 1, 0, 1, 0, 1]), 2, labels=2, validation=1, test=2, seed=0)
    Division(few=tensor([4, 5]), validation=tensor([0]), test=tensor([1, 3]), rest=tensor([2]))
    """
    if labels + validation + test > len(y):
        raise ValueError(f"{labels} + {validation} + {test} examples are asked for, but there are {len(y)}.")
    order = torch.randperm(len(y), generator=generator_for(seed, "division"))
    rank = torch.empty(len(y), dtype=torch.int64)
    for c in range(max(1, num_classes)):
        mine = order[y[order] == c] if num_classes else order
        rank[mine] = torch.arange(len(mine))
    balanced = order[rank[order].argsort(stable=True)]  # the first of every class, then the second ...
    few, others = balanced[:labels], order[~torch.isin(order, balanced[:labels])]
    parts = (few, others[:validation], others[validation : validation + test], others[validation + test :])
    return Division(*(part.sort().values for part in parts))
