"""Means over the processes of ``torch.distributed``. A single process sends nothing and changes nothing."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

import torch
import torch.distributed as dist
from torch import Tensor, nn

Group: TypeAlias = Any
"""A ``torch.distributed.ProcessGroup``, a class that not every build of torch has; ``None``: all processes."""

_group: ContextVar[Group] = ContextVar("group", default=None)


class ProcessError(Exception):
    """Another process failed, or gave no answer, so this one cannot update the weights either.

    No ``RuntimeError``: an engine that raises one is replaced by another, which would wait for the same process.
    """


@contextmanager
def use_group(group: Group) -> Iterator[None]:
    """Inside, means are over the processes of ``group``."""
    token = _group.set(group)
    try:
        yield
    finally:
        _group.reset(token)


def num_processes() -> int:
    """The number of processes that train together; 1 without ``torch.distributed``."""
    return dist.get_world_size(_group.get()) if dist.is_available() and dist.is_initialized() else 1


def process_rank() -> int:
    """The number of this process among those that train together; 0 without ``torch.distributed``."""
    return dist.get_rank(_group.get()) if dist.is_available() and dist.is_initialized() else 0


def mean_over_processes(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Each tensor averaged over all processes, in one all-reduce for the whole sequence.

    Every process must call it with tensors of the same shapes. It divides a sum, which also works on gloo.
    """
    if num_processes() == 1:
        return list(tensors)
    flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
    with _explain_silence():
        dist.all_reduce(flat, group=_group.get())
    flat /= num_processes()
    parts = flat.split([tensor.numel() for tensor in tensors])
    return [part.view(tensor.shape).to(tensor.dtype) for part, tensor in zip(parts, tensors, strict=True)]


def mean_of_numbers(tensors: Sequence[Tensor]) -> list[Tensor]:
    """:func:`mean_over_processes` for a few numbers, which processes may hold in different precisions."""
    if num_processes() == 1:
        return list(tensors)
    return mean_over_processes([tensor.double() for tensor in tensors])


def largest_over_processes(tensor: Tensor) -> Tensor:
    """The largest value of every entry over all processes."""
    if num_processes() == 1:
        return tensor
    largest = tensor.clone()
    with _explain_silence():
        dist.all_reduce(largest, dist.ReduceOp.MAX, group=_group.get())
    return largest


def average_gradients(parameters: Iterable[Tensor]) -> None:
    """Averages ``.grad`` over all processes, for a network outside ``DistributedDataParallel``."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    for gradient, mean in zip(gradients, mean_over_processes(gradients) if gradients else [], strict=True):
        if mean is not gradient:
            gradient.copy_(mean)


@torch.no_grad()
def average_buffers(module: nn.Module) -> None:
    """Averages buffers over all processes: BatchNorm's running statistics, of each process's own examples."""
    buffers = [buffer for buffer in module.buffers() if buffer.is_floating_point()]
    if buffers and num_processes() > 1:
        for buffer, mean in zip(buffers, mean_over_processes(buffers), strict=True):
            buffer.copy_(mean)


def gather(answer: object) -> list[Any]:
    """The answers of all processes in their order. Slower than a mean: for rare messages that are no numbers."""
    answers = [answer] * num_processes()
    if len(answers) > 1:
        with _explain_silence():
            dist.all_gather_object(answers, answer, group=_group.get())
    return answers


def raise_together(error: Exception | None) -> None:
    """Raises on all processes: the ``error`` on those that have one, and on the others a sentence that names it."""
    texts = gather(None if error is None else f"{type(error).__name__}: {error}")
    if error is not None:
        raise error
    failures = [f"process {rank} failed with {text}" for rank, text in enumerate(texts) if text is not None]
    if failures:
        raise ProcessError(f"The weights cannot be updated, because {'; '.join(failures)}")


@contextmanager
def _explain_silence() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        reason = str(error).strip().splitlines()
        raise ProcessError(
            "An update of the weights got no answer from another process. That process has ended, has raised an error, "
            "or makes other calls than this one; its own output says which. torch reports: "
            f"{reason[0] if reason else type(error).__name__}"
        ) from error
