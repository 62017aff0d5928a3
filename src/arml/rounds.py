"""Updates from batches that hold some of the tasks each."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.gradients.sketch import TaskProducts
from arml.methods.base import Method

LONGEST = 5
"""A round ends after this many calls per auxiliary task, whether it has met all tasks or not."""


class Round(NamedTuple):
    """The tasks met since the round began. Index 0 is the main task; entries of tasks not yet met are 0."""

    expected: Tensor
    """[1 + K] of bool: the tasks to wait for."""
    calls: Tensor
    """Calls since the round began."""
    met: Tensor
    """[1 + K] of bool."""
    losses: Tensor
    """[1 + K], each from the batch in which the task was met."""
    gram: Tensor
    """[1 + K, 1 + K]: <g_i, g_j>. Exact on the diagonal and for the main task and a task of the same batch."""
    sketches: Tensor
    """[1 + K, m], for the products of tasks from different batches; m is 0 before the first task is met."""


class Rounds:
    """Meets every task once, over as many batches as that takes; then all weights can be updated together.

    A round begins with a batch that holds the main loss. It ends when all expected tasks have been met, or after
    ``LONGEST`` calls per auxiliary task. Tasks that were not met by then are not expected again before they show up.
    """

    def __init__(self, like: Tensor) -> None:
        self.now = _begin(torch.ones_like(like, dtype=torch.bool), like)
        self._unexpected: list[int] = []

    def notice(self, losses: Sequence[Tensor | None]) -> None:
        """Expects every task that this process meets, also between updates."""
        # The list is empty in nearly all trainings: this costs nothing then.
        seen = [i for i in self._unexpected if losses[i] is not None]
        if seen:
            expected = self.now.expected.clone()
            expected[seen] = True
            self.expect(expected)

    def expect(self, expected: Tensor) -> None:
        """Waits for the tasks ``expected`` [1 + K] of bool from now on."""
        self.restore(self.now._replace(expected=expected))

    def restore(self, state: Round) -> None:
        """Continues from ``state``."""
        self.now = state
        self._unexpected = (~state.expected).nonzero().flatten().tolist()

    def is_covered_by(self, present: Tensor) -> bool:
        """Whether a batch holds all expected tasks, so that no round is necessary."""
        return bool((present | ~self.now.expected).all())

    def tasks_to_measure(self, usable: Tensor) -> list[int]:
        """Tasks of the batch that the round has not met; with them the main task, for its products with them."""
        new = usable & ~self.now.met
        if not bool(new.any()) or not bool(usable[0] | self.now.met[0]):
            return []
        new[0] = usable[0]
        return new.nonzero().flatten().tolist()

    def add(self, found: TaskProducts, which: Tensor, losses: Tensor) -> None:
        """Adds the tasks ``which`` [1 + K] of bool; a round that meets the main task first is begun."""
        now = self.now
        if found.sketches.shape[1] != now.sketches.shape[1]:  # none so far, or of other shared parameters
            now = _begin(now.expected, losses)._replace(sketches=torch.zeros_like(found.sketches))
        if not bool(which[0] | now.met[0]):
            return
        sketches = torch.where(which[:, None], found.sketches, now.sketches)
        new = which & ~now.met
        products = sketches @ sketches.T
        if bool(which[0]):
            products[0, which] = products[which, 0] = found.with_main[which]
        products.diagonal()[which] = found.squares[which]
        self.now = now._replace(
            met=now.met | which,
            losses=torch.where(which, losses, now.losses),
            gram=torch.where(new[:, None] | new[None], products, now.gram),
            sketches=sketches,
        )

    def end(self, present: Tensor, method: Method[Any], memory: Any) -> Signals | None:
        """What the round shows ``method`` if this call, with the tasks ``present``, ends it; else ``None``."""
        now = self.now
        if not bool(now.met[0]):
            return None
        # A task that is here and still not met cannot be measured at the moment: waiting for it may take for ever.
        complete = bool((now.met | present | ~now.expected).all())
        calls = now.calls + 1
        if not complete and calls < LONGEST * (len(present) - 1):
            self.now = now._replace(calls=calls)
            return None
        self.clear()
        if not bool(now.met[1:].any()):
            return None
        if not complete:
            self.expect(now.met)
        needs, directions = method.needs(), method.directions(memory)
        return Signals(
            now.losses,
            None if directions is None else directions @ now.gram,
            # Products of different batches need not belong to any vectors; those of sketches do, as solvers expect.
            now.sketches @ now.sketches.T if needs.gram else None,
            now.gram.diagonal().sqrt() if needs.norms else None,
            now.met,
        )

    def clear(self) -> None:
        """Begins again."""
        if bool(self.now.met[0]):
            self.now = _begin(self.now.expected, self.now.losses)


def _begin(expected: Tensor, like: Tensor) -> Round:
    zeros = torch.zeros_like(like)
    return Round(expected, zeros[0], zeros.bool(), zeros, torch.outer(zeros, zeros), zeros[:, None][:, :0])
