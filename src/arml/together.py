"""Keeps the processes that train one model in step: they agree once, and fail together."""

import gc
import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from arml._distributed import Group, gather, mean_of_numbers, num_processes, raise_together, use_group

JOIN = (
    "DistributedDataParallel.join() cannot be used with a Reweighter: processes without data do not take part in "
    "updates of the weights. Give every process the same number of batches, for example with DistributedSampler or "
    "drop_last=True."
)


class Processes:
    """The processes of a group, seen by one Reweighter."""

    def __init__(self, group: Group) -> None:
        """``group`` is a ``torch.distributed.ProcessGroup``; ``None``: all processes."""
        if group is not None and (group is dist.GroupMember.NON_GROUP_MEMBER or dist.get_rank(group) < 0):
            raise ValueError(
                "This process is not a member of the `process_group` it was given. Pass the group it belongs to."
            )
        self.group, self.agreed = group, False

    def __deepcopy__(self, memo: dict[int, Any]) -> "Processes":
        """A copy of a model trains with the same processes; a group itself cannot be copied."""
        copy = Processes(self.group)
        copy.agreed = self.agreed
        return copy

    def __reduce__(self) -> tuple[Any, ...]:
        """Only the default group exists in another program, too."""
        if self.group is not None:
            raise TypeError("A Reweighter with a `process_group` cannot be pickled. Save its state_dict() instead.")
        return (Processes, (None,))

    def __call__(self) -> AbstractContextManager[None]:
        """Inside, means are over these processes."""
        return use_group(self.group)

    def agree(self, facts: Mapping[str, Any], parameters: Iterable[Tensor]) -> None:
        """Raises on all processes if one of them failed before, if the ``facts`` differ, or inside ``join()``."""
        with self():
            if num_processes() > 1:
                _check_not_joining(parameters)
            answers = gather({"failure": None, "facts": facts})
            if any(answer["failure"] for answer in answers):
                raise_together(None)
        for name in facts:
            values = [answer["facts"][name] for answer in answers]
            if any(value != values[0] for value in values):
                found = "; ".join(f"process {rank} has {value}" for rank, value in enumerate(values))
                raise ValueError(
                    f"The processes do not agree on {name}: {found}. Make the Reweighter with the same arguments on "
                    "every process, load the same checkpoint, and make the same calls."
                )
        self.agreed = True

    def announce(self, error: Exception, num_tasks: int, device: torch.device) -> None:
        """Tells the other processes about ``error``, at a call at which they wait for this one; then raises it."""
        with self():
            if num_processes() == 1:
                return
            if self.agreed:
                # The losses that the others wait for. No presence is NaN otherwise, so they understand.
                mean_of_numbers([torch.full([num_tasks], torch.nan, device=device)] * 3)
            else:
                gather({"failure": True, "facts": {}})
            raise_together(error)


def describe(setting: object) -> str:
    """The text of a setting, the same on all processes: without places in memory."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(setting))


def check_not_sharded(named: Mapping[str, Tensor], *modules: nn.Module) -> None:
    """Raises if a parameter, or a part of the modules, is split over several processes."""
    split = [name for name, p in named.items() if hasattr(p, "device_mesh") or getattr(p, "_is_flat_param", False)]
    # After a forward pass the parameters of such a module may be whole for a while.
    parts = [name or type(m).__name__ for m in modules for name, part in m.named_modules() if _is_sharded(part)]
    if split or parts:
        raise ValueError(
            f"`shared` holds {(split or parts)[0]!r}, which FSDP or tensor parallelism splits over processes. "
            "Gradients of such parameters cannot be compared. Train with DistributedDataParallel, or pass as `shared` "
            "a part of the network that every process holds completely."
        )


def _is_sharded(module: nn.Module) -> bool:
    # By name, because importing these classes takes long.
    return any(kind.__name__ in ("FSDPModule", "FullyShardedDataParallel") for kind in type(module).__mro__)


def _check_not_joining(parameters: Iterable[Tensor]) -> None:
    """Raises inside ``join()`` of the ``DistributedDataParallel`` that holds one of the parameters."""
    mine = {id(p) for p in parameters}
    # The wrapper is not handed to us, and nothing that is handed to us refers to it.
    for thing in gc.get_objects():
        is_joining = issubclass(type(thing), DistributedDataParallel) and thing._join_config.enable
        if is_joining and any(id(p) in mine for p in thing.parameters()):
            raise ValueError(JOIN)
