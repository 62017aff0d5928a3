"""Checks that the losses depend on the shared parameters, from what an update measures anyway."""

import warnings
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from arml._distributed import mean_of_numbers
from arml.gradients.backward import REENTRANT, TaskLosses
from arml.gradients.graph import CHECKPOINT, has_node, leaves

REPLACED = (
    "Parameters are replaced by load_state_dict(assign=True), weight_norm, adapters such as LoRA, or a swapped layer: "
    "pass the module as `shared` (or shared_parameters(model, 'trunk')), which is read again at every update."
)
ALL_LOSSES = "Pass as `shared` the part of the network that all losses go through."


class Connection:
    """What is known about which loss depends on which shared parameters. Every finding is reported once.

    The graph is walked through only where an update shows something unusual: a parameter without gradient, or an inner
    product of exactly 0.
    """

    def __init__(self, tasks: Sequence[str], *, read_anew: bool) -> None:
        """``read_anew``: whether replaced parameters are found by reading ``shared`` again."""
        self._tasks, self._read_anew = ("main", *tasks), read_anew
        self.main_name = "main"
        """What warnings call the loss that auxiliary tasks are compared with."""
        self._present: set[str] = set()
        self._touched: set[str] | None = None
        self._examined: set[str] = set()
        self._outside: set[str] = set()
        self._reported_frozen = False

    def check(
        self, losses: TaskLosses, shared: Mapping[str, Tensor], touched: set[int], products: Sequence[Tensor]
    ) -> list[str]:
        """Reports what is new in ``touched``, the ids of parameters with a gradient, and in ``products``, [..., 1 + K].

        Returns the tasks that depend on shared parameters and still have a product of 0, each task once.
        """
        trainable = {name: p for name, p in shared.items() if p.requires_grad}
        if not trainable:
            self._report_frozen()
            return []
        nonzero = torch.stack([part.reshape(-1, len(losses)).any(dim=0) for part in products]).any(dim=0).tolist()
        seen = {name for name, p in trainable.items() if id(p) in touched}
        if not any(nonzero):
            self._check_any(losses, trainable)
        if seen:  # an engine of the user's own may record nothing
            self._compare(losses, trainable, seen)
        present = [(task, loss) for task, loss in zip(self._tasks, losses, strict=True) if loss.requires_grad]
        zero = {task for task, fine in zip(self._tasks, nonzero, strict=True) if not fine} - self._examined
        self._examined |= {task for task, _ in present} & zero
        return self._report_tasks({task: loss for task, loss in present if task in zero}, trainable)

    def _check_any(self, losses: TaskLosses, trainable: Mapping[str, Tensor]) -> None:
        reached = not leaves(losses).isdisjoint(map(id, trainable.values()))
        # A process whose part of the batch holds no such task is fine, as long as another one holds it.
        if not bool(mean_of_numbers([torch.tensor(float(reached), device=losses[0].device)])[0]):
            _check_reentrant(losses)
            raise ValueError(
                f"No loss depends on the shared parameters ({len(trainable)} of them, the first is "
                f"{next(iter(trainable))!r}). Pass as `shared` the trunk that computed these losses, not a copy of it."
                f"{'' if self._read_anew else ' ' + REPLACED}"
            )

    def _compare(self, losses: TaskLosses, trainable: Mapping[str, Tensor], seen: set[str]) -> None:
        """Compares the parameters with a gradient with those of earlier updates that held no other tasks."""
        present = {task for task, loss in zip(self._tasks, losses, strict=True) if loss.requires_grad}
        if self._touched is None:
            if len(seen) < len(trainable):
                _check_reentrant(losses)
                _report_most({name: p for name, p in trainable.items() if name not in seen}, trainable)
            self._touched = set()
        elif self._present <= present and (lost := (self._touched - seen) & trainable.keys()):
            _check_reentrant(losses)
            self._touched -= lost  # layers that are skipped at random would be reported again and again
            if not self._read_anew:
                warnings.warn(
                    f"The losses no longer depend on {len(lost)} of the {len(trainable)} given shared parameters, such "
                    f"as {min(lost)!r}. They count as zero. {REPLACED}",
                    stacklevel=2,
                )
        if self._present <= present:
            self._present = present
            self._touched |= seen

    def _report_tasks(self, losses: Mapping[str, Tensor], trainable: Mapping[str, Tensor]) -> list[str]:
        ids = set(map(id, trainable.values()))
        outside = [task for task, loss in losses.items() if leaves([loss]).isdisjoint(ids)]
        if outside[:1] == ["main"]:
            warnings.warn(
                f"The loss of {self.main_name!r} does not depend on the shared parameters: its gradient counts as "
                f"zero, and no auxiliary task can be compared with it. {ALL_LOSSES}",
                stacklevel=2,
            )
        if aux := [task for task in outside if task != "main"]:
            self._outside.update(aux)
            warnings.warn(f"{self._describe_outside(aux)} {ALL_LOSSES}", stacklevel=2)
        return [task for task in losses if task not in outside]

    def _describe_outside(self, tasks: Sequence[str]) -> str:
        """What it means that ``tasks`` do not depend on the shared parameters."""
        inside = [task for task in self._tasks[1:] if task not in self._outside]
        names = ", ".join(map(repr, tasks[:5])) + (", ..." if len(tasks) > 5 else "")
        if not inside:
            return f"No auxiliary loss ({names}) depends on the shared parameters: no weight can be learned."
        one, many = "its gradient counts as zero, and its weight", "their gradients count as zero, and their weights"
        said = f"The loss of {names} does not" if len(tasks) == 1 else f"The losses of {names} do not"
        said += f" depend on the shared parameters: {one if len(tasks) == 1 else many} cannot be learned."
        return said + (f" Only {inside[0]!r} is left to compare with the main task." if len(inside) == 1 else "")

    def _report_frozen(self) -> None:
        if self._touched and not self._read_anew and not self._reported_frozen:
            self._reported_frozen = True
            warnings.warn(
                f"The given shared parameters are all frozen now: the weights stay as they are. {REPLACED}",
                stacklevel=2,
            )


def _check_reentrant(losses: TaskLosses) -> None:
    """Raises if parameters without gradient may be hidden inside a checkpointed part."""
    if has_node(losses, CHECKPOINT):
        raise ValueError(REENTRANT)


def _report_most(untouched: Mapping[str, Tensor], trainable: Mapping[str, Tensor]) -> None:
    if 2 * _num_entries(untouched) > _num_entries(trainable):
        warnings.warn(
            f"No loss depends on {len(untouched)} of the {len(trainable)} shared parameters, such as "
            f"{next(iter(untouched))!r}; they hold {_num_entries(untouched)} of {_num_entries(trainable)} numbers, "
            f"and count as zero. {ALL_LOSSES}",
            stacklevel=2,
        )


def _num_entries(named: Mapping[str, Tensor]) -> int:
    return sum(p.numel() for p in named.values())
