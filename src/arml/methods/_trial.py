"""What becomes of competing tasks where the main examples cannot judge them, as :class:`arml.Agreement` has it."""

from typing import NamedTuple

import torch
from torch import Tensor

from arml.methods._evidence import SEEN, Meetings

BLIND = 1.0
"""Main examples that agree with one another by fewer standard deviations than this may tell nothing about any task."""
TRIAL = 40
"""Updates of the longest trial after the warm-up."""
PASSED = 0.6
"""After a trial, peers need this share of the correlations on their own examples: what is trained on looks alike."""


class Trial(NamedTuple):
    """What follows where main examples cannot judge tasks."""

    sight: Tensor
    """How many standard deviations the main examples agreed with one another by at first; infinite: not known."""
    trust: Tensor
    """[K]: 1 for competing tasks that are on trial, or have passed it."""
    running: Tensor
    """A bool: whether tasks are on trial."""

    def begin(self, sight: Tensor, alike: Tensor) -> "Trial":
        """Decides, when ``sight`` is known, whether the tasks ``alike`` [K] are put on trial; one has no peers."""
        blind = bool(sight < BLIND) and int(alike.sum()) > 1
        return Trial(sight, alike.to(self.trust) * blind, torch.full_like(self.running, blind))

    def proceed(self, own: Tensor, meetings: Meetings, updates: int) -> "Trial":
        """Ends the trial once features answer a task's own examples by ``own`` [K], or never will; else as it is.

        Tasks with a peer stay as they are, all others are off. ``updates`` are those since the warm-up. Features that
        see by its end were not blind: then no task passes, and all are judged as elsewhere.
        """
        sees = bool((own > SEEN).any())
        if updates < 0 or not (sees or updates >= TRIAL):
            return self
        passed = meetings.peers(own, PASSED).any(1) if updates else torch.zeros_like(own)
        return self._replace(trust=self.trust * passed, running=torch.zeros_like(self.running))
