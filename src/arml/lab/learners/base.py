"""The interface of all learners: network, batch and step -> named losses."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from arml.lab.data.batches import Batch
from arml.lab.models.ema import EMATeacher
from arml.lab.models.network import Network, Trunk

B = TypeVar("B", contravariant=True)
AugmentExamples = Callable[[Tensor, torch.Generator], Tensor]
"""Changes examples at random, each separately."""


class Learner(Protocol[B]):
    """Computes losses from a batch of type ``B``. Every loss is a mean over the examples it is about."""

    tasks: tuple[str, ...]
    """Names of the auxiliary losses; empty for learning from labels alone."""
    heads: dict[str, int]
    """Heads that the network needs in addition to ``"class"``, with their number of outputs."""

    needs_whole_batch: bool = False
    """Whether it compares the examples of a batch with each other, so that several processes cannot share one."""
    takes_own_steps: bool = False
    """Whether it trains a second network by itself, without a loss scale."""
    calls_trunk: bool = True
    """Whether its passes call the trunk as a whole and leave it unwatched, so that it may be compiled."""

    def network(self, trunk: Trunk, num_classes: int) -> Network:
        """The network to train, with all its heads on ``trunk``."""
        return Network(trunk, trunk.num_features, {"class": num_classes, **self.heads})

    def start(self, network: Network) -> None:
        """Called once, before the first step."""
        del network

    def losses(
        self, network: Network, batch: B, step: int, generator: torch.Generator
    ) -> tuple[Tensor | None, dict[str, Tensor]]:
        """The main loss, ``None`` for a batch without main labels, and one auxiliary loss per name in ``tasks``.

        Everything random is drawn from ``generator``. Exactly one pass moves BatchNorm's running statistics.
        """
        ...

    def after_step(self, network: Network) -> None:
        """Called after every step of the optimiser."""
        del network

    def state_dict(self) -> dict[str, Any]:
        """The state that later steps depend on."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues exactly from ``state``."""
        if state:
            raise ValueError(f"{type(self).__name__} keeps no state, but was given {', '.join(state)}.")


class Settings(Protocol):
    """What the settings of all learners have in common; each is a frozen dataclass."""

    @property
    def lr(self) -> float:
        """The learning rate that the learner was tuned for."""
        ...


class SemiSupervisedLearner(Learner[Batch], Protocol):
    """A learner from labelled and unlabelled images.

    Oliver et al. divide the sums by the number of labelled and unlabelled images together. With equal numbers of both,
    as in their runs, every loss is half of the loss here.
    """

    settings: Settings
    """The values chosen by hand."""


class TaughtLearner(SemiSupervisedLearner, Protocol):
    """A learner with a teacher that follows the network after every step."""

    decay: float
    """Decay of the teacher's moving average."""
    _teacher: EMATeacher | None = None

    @property
    def teacher(self) -> EMATeacher:
        """The teacher; ``start`` creates it."""
        if self._teacher is None:
            raise RuntimeError(f"{type(self).__name__} has no teacher yet. Call start(network) once, before training.")
        return self._teacher

    def start(self, network: Network) -> None:
        """Creates the teacher as a copy of ``network``."""
        self._teacher = EMATeacher(network, self.decay)

    def after_step(self, network: Network) -> None:
        """Updates the teacher."""
        self.teacher.update(network)

    def state_dict(self) -> dict[str, Any]:
        """The state of the teacher."""
        return self.teacher.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues exactly from ``state``; call ``start`` first."""
        self.teacher.load_state_dict(state)
