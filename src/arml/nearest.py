"""Finds the shared parameters next to the losses: gradients on them are cheap to measure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from arml._distributed import mean_of_numbers
from arml.gradients.backward import last_layer, nearest_parameters
from arml.gradients.compiled import is_compiled

Find: TypeAlias = Callable[[Tensor, Sequence[Tensor]], Sequence[Tensor]]
"""(a loss with its graph, trainable shared parameters) -> those next to the loss."""


def next_two(loss: Tensor, shared: Sequence[Tensor]) -> Sequence[Tensor]:
    """The nearest two. Not one alone: a bias before BatchNorm has a gradient of rounding errors only."""
    return nearest_parameters([loss], shared, most=2)


class Nearest:
    """The shared parameters next to each loss, of all tasks together.

    They are at the end of a trunk that all tasks go through, and wherever a task leaves it earlier. No backward pass to
    them goes through the whole network. The graph of every task is looked at once.
    """

    def __init__(self, num_tasks: int, find: Find = last_layer) -> None:
        self._known, self._find = torch.zeros(num_tasks, dtype=torch.bool, device="cpu"), find
        self._names: frozenset[str] = frozenset()

    def look_at(self, losses: Sequence[Tensor | None], shared: Mapping[str, Tensor], device: torch.device) -> bool:
        """Looks at the tasks of a batch that are not known yet. Returns whether it has found further parameters.

        Args:
            losses: one per task, main task first, with their graphs; ``None``: missing.
            shared: the shared parameters by name.
            device: where processes exchange numbers.
        """
        if not any(p.requires_grad for name, p in shared.items() if name in self._names):  # frozen, or replaced
            self._known, self._names = torch.zeros_like(self._known), frozenset()
        if bool(self._known.all()):
            return False
        new = [loss is not None and not known for loss, known in zip(losses, self._known.tolist(), strict=True)]
        trainable = [p for p in shared.values() if p.requires_grad]
        looked = [loss for loss, is_new in zip(losses, new, strict=True) if loss is not None and is_new]
        # Every pass through a compiled network goes through all of it: there is nothing to save.
        near = [trainable if is_compiled(loss) else self._find(loss, trainable) for loss in looked]
        found = {id(p) for parameters in near for p in parameters}
        # A process may hold no example of a task: what any process has found holds for all of them.
        facts = (new, [id(p) in found for p in shared.values()])
        known, chosen = mean_of_numbers([torch.tensor(part, device=device).float() for part in facts])
        before = self._names
        self._known = self._known | (known.cpu() > 0)
        self._names = before | {name for name, share in zip(shared, chosen.tolist(), strict=True) if share > 0}
        return self._names != before

    def choose(self, shared: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Those of ``shared`` that are next to a loss; all of them if none is."""
        return {name: p for name, p in shared.items() if name in self._names} or dict(shared)

    def state_dict(self) -> dict[str, Any]:
        """What has been found out."""
        return {"known": self._known, "names": sorted(self._names)}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continues from ``saved``; what is not in it is looked at again."""
        self._known = saved["known"].clone() if saved else torch.zeros_like(self._known)
        self._names = frozenset(saved.get("names", ()))
