"""Means over the processes of ``torch.distributed``. A single process sends nothing and changes nothing."""

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor


def num_processes() -> int:
    """The number of processes that train together; 1 without ``torch.distributed``."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def mean_over_processes(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Each tensor averaged over all processes, in one all-reduce for the whole sequence.

    Every process must call it with tensors of the same shapes. It divides a sum, which also works on gloo.
    """
    if num_processes() == 1:
        return list(tensors)
    flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
    dist.all_reduce(flat)
    flat /= num_processes()
    parts = flat.split([tensor.numel() for tensor in tensors])
    return [part.view(tensor.shape).to(tensor.dtype) for part, tensor in zip(parts, tensors, strict=True)]


def mean_of_numbers(tensors: Sequence[Tensor]) -> list[Tensor]:
    """:func:`mean_over_processes` for a few numbers, which processes may hold in different precisions."""
    if num_processes() == 1:
        return list(tensors)
    return mean_over_processes([tensor.double() for tensor in tensors])
