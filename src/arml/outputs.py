"""Finds the auxiliary tasks that train the outputs of the main task."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from arml._distributed import mean_of_numbers
from arml.gradients.compiled import trained_parameters
from arml.state import fill


class KnownOutputs(NamedTuple):
    """What has been found out, [K] of bool each."""

    known: Tensor
    """Whether the task has been looked at."""
    same: Tensor
    """Whether it trains the outputs of the main task."""


class Outputs:
    """Looks at the graph of every auxiliary task once, and remembers the answer.

    A task trains the outputs of the main task if it goes through every trainable parameter that the main loss goes
    through, those outside ``shared`` too. So do all tasks where the main task has no parameters of its own, for example
    because its head is frozen.
    """

    def __init__(self, num_aux: int) -> None:
        nothing = torch.zeros(num_aux, dtype=torch.bool, device="cpu")
        self.found = KnownOutputs(nothing, nothing)
        self._main: frozenset[int] | None = None

    def look_at(self, losses: Sequence[Tensor | None], device: torch.device) -> None:
        """Looks at the tasks of a batch that are not known yet, once a batch has shown the main loss.

        Args:
            losses: the main loss, then one per task, with their graphs; ``None``: missing.
            device: where processes exchange numbers.
        """
        known = self.found.known
        if bool(known.all()):
            return
        new = [None if done else loss for loss, done in zip(losses[1:], known.tolist(), strict=True)]
        if losses[0] is not None and (self._main is None or any(loss is not None for loss in new)):
            self._main = _find_trained(losses[0])
        main = self._main
        here = [loss is not None and main is not None for loss in new]
        same = [loss is not None and main is not None and main <= _find_trained(loss) for loss in new]
        # A process may hold no example of a task: what any process has found out holds for all of them.
        found, agreed = mean_of_numbers([torch.tensor(part, device=device).float() for part in (here, same)])
        self.found = KnownOutputs(known | (found.cpu() > 0), torch.where(known, self.found.same, agreed.cpu() > 0))

    def same(self) -> Tensor:
        """[K] of bool: tasks that train the outputs of the main task, or may do so because they are not known yet."""
        return self.found.same | ~self.found.known

    def restore(self, saved: Mapping[str, Tensor]) -> None:
        """Continues from ``saved``; what is not in it is looked at again."""
        nothing = torch.zeros_like(self.found.known)
        self.found = fill(KnownOutputs(nothing, nothing), saved)


def _find_trained(loss: Tensor) -> frozenset[int]:
    return frozenset(map(id, trained_parameters(loss)))
