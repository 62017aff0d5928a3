"""Short stand-ins for gradients, so that tasks can be compared whose gradients are never known at the same time.

S : R^P -> R^m flips signs at random and adds up every m-th entry. Over random signs <S a, S b> has the mean <a, b> and
a standard deviation of about |a| |b| / sqrt(m), 0.8 % of |a| |b|. With P <= m it is exact.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from arml._distributed import mean_over_processes
from arml.gradients.backward import Gradient, TaskLosses, dot, task_gradient
from arml.gradients.shared import Shared, parameters_by_name

SIZE = 16_381
"""m. A prime number: rows of matrices, whose lengths are round numbers, spread over all sums."""


class TaskProducts(NamedTuple):
    """What is measured of single tasks; 0 for all others."""

    with_main: Tensor
    """[1 + K]: <g_0, g_i>; 0 if the main task is not measured."""
    squares: Tensor
    """[1 + K]: |g_i|^2."""
    sketches: Tensor
    """[1 + K, m]: S g_i."""


def measure_tasks(losses: TaskLosses, shared: Shared, tasks: Sequence[int]) -> TaskProducts:
    """One backward pass per task in ``tasks``, in ascending order; memory for two gradients."""
    trainable = [p for p in parameters_by_name(shared).values() if p.requires_grad]
    size = min(SIZE, sum(p.numel() for p in trainable))
    zeros = torch.zeros(len(losses), 2 + size, dtype=torch.float64)
    main: Gradient = [torch.zeros_like(p) for p in trainable]
    for i in tasks if trainable else ():
        with torch.autocast(losses[0].device.type, enabled=False):
            g = mean_over_processes(task_gradient(losses[i], trainable))
            main = g if i == 0 else main
            zeros[i] = torch.cat([torch.stack([dot(g, main), dot(g, g)]), sketch(g)]).to(zeros)
    return TaskProducts(zeros[:, 0], zeros[:, 1], zeros[:, 2:])


def sketch(gradient: Gradient) -> Tensor:
    """S g, [min(P, m)].

    >>> sketch([torch.ones(2), torch.zeros(1)])
    tensor([1., 1., 0.])
    """
    flat = torch.cat([part.reshape(-1) for part in gradient])
    if len(flat) <= SIZE:
        return flat
    flat *= _signs(len(flat), flat.device)
    return F.pad(flat, (0, -len(flat) % SIZE)).view(-1, SIZE).sum(0)


@lru_cache(maxsize=1)
def _signs(count: int, device: torch.device) -> Tensor:
    # Drawn on the CPU: the same on every device, and so the same after a resume and in every process.
    draws = torch.randint(0, 2, (count,), generator=torch.Generator().manual_seed(0), dtype=torch.int8)
    return (2 * draws - 1).to(device)
