"""Several processes that train one run: each has a part of every batch, and all hold the same network."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import signature
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from arml._distributed import num_processes, process_rank
from arml.lab.data.draws import Part
from arml.lab.learners.base import Learner
from arml.lab.models.network import Network


@contextmanager
def join_processes(device: torch.device) -> Iterator[Part]:
    """Joins the processes that torchrun has started, if it has; yields the part of every batch that this one has."""
    mine = int(os.environ.get("WORLD_SIZE", "1")) > 1 and not dist.is_initialized()
    if mine:
        if device.type == "cuda":
            torch.cuda.set_device(device)
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield present_processes()
    finally:
        if mine:
            dist.destroy_process_group()


def present_processes() -> Part:
    """The number of this process, and of all processes that train the run."""
    return Part(process_rank(), num_processes())


@contextmanager
def first_process_first() -> Iterator[None]:
    """The first process runs what is inside before the others, which then find decoded images in the cache."""
    if process_rank() > 0:
        dist.barrier()
    yield
    if process_rank() == 0 and num_processes() > 1:
        dist.barrier()


def wait_for_all() -> None:
    """Goes on when every process has come this far."""
    if num_processes() > 1:
        dist.barrier()


def check_sharing(learner: Learner[Any], part: Part) -> None:
    """Raises if several processes cannot share the batches of ``learner``."""
    if part.of > 1 and learner.needs_whole_batch:
        raise ValueError(
            f"{type(learner).__name__} compares the images of a batch with each other, so {part.of} processes cannot "
            "share one. Train it with a single process, without torchrun."
        )


class Losses(nn.Module):
    """The losses of a learner as a module: DDP averages gradients of what comes from calling one."""

    def __init__(self, network: Network, learner: Learner[Any]) -> None:
        super().__init__()
        self.network, self.learner = network, learner

    def forward(self, batch: Any, step: int, generator: torch.Generator) -> tuple[Tensor | None, dict[str, Tensor]]:
        """What ``learner.losses`` returns."""
        return self.learner.losses(self.network, batch, step, generator)


def make_losses(network: Network, learner: Learner[Any], device: torch.device) -> nn.Module:
    """The losses of this process's part of a batch. With several processes, their gradients are averaged."""
    losses = Losses(network, learner)
    if num_processes() == 1:
        return losses
    # BatchNorm's statistics are averaged where they are needed: before evaluations and checkpoints.
    known = signature(DistributedDataParallel).parameters
    unsent = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"  # its older name
    options: dict[str, Any] = {unsent: False}
    return DistributedDataParallel(losses, [device] if device.type == "cuda" else None, **options)


def seed_step(seed: int, step: int, part: Part) -> None:
    """Seeds dropout: every process drops other units, and a resumed run, on any number of processes, the same."""
    if part.of > 1:
        torch.manual_seed(int(np.random.SeedSequence([seed, step, *part]).generate_state(1)[0]))
