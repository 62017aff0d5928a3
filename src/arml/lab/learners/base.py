"""The one interface of every learner: network, batch and step to named losses."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from arml.lab.data.batches import Batch
from arml.lab.models.ema import EMATeacher
from arml.lab.models.network import Network, Trunk

B = TypeVar("B", contravariant=True)
AugmentExamples = Callable[[Tensor, torch.Generator], Tensor]
"""Changes examples at random, every one by itself."""


class Learner(Protocol[B]):
    """What is learned from a batch of type ``B``. Every loss is a mean over the examples it is about."""

    tasks: tuple[str, ...]
    """Names of the auxiliary losses; none for learning from labels alone."""
    heads: dict[str, int]
    """Heads the network needs besides ``"class"``, with their number of outputs."""

    def network(self, trunk: Trunk, num_classes: int) -> Network:
        """The network that is trained, with all its heads on ``trunk``."""
        return Network(trunk, trunk.num_features, {"class": num_classes, **self.heads})

    def start(self, network: Network) -> None:
        """Called once, before the first step."""
        del network

    def losses(
        self, network: Network, batch: B, step: int, generator: torch.Generator
    ) -> tuple[Tensor | None, dict[str, Tensor]]:
        """The main loss, ``None`` in a batch without main labels, and one auxiliary loss for every name in ``tasks``.

        Everything random is drawn from ``generator``. Exactly one pass moves BatchNorm's running statistics.
        """
        ...

    def after_step(self, network: Network) -> None:
        """Called after every step of the optimiser."""
        del network

    def state_dict(self) -> dict[str, Any]:
        """What later steps depend on."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues exactly where ``state`` was taken."""
        if state:
            raise ValueError(f"{type(self).__name__} keeps no state, but was given {', '.join(state)}.")


class Settings(Protocol):
    """A frozen dataclass; what the settings of all learners have."""

    @property
    def lr(self) -> float:
        """The step size of Adam that the learner was tuned for."""
        ...


class SemiSupervisedLearner(Learner[Batch], Protocol):
    """What is learned from labelled and unlabelled images.

    Oliver et al. divide the sums by the number of labelled and unlabelled images together. With as many of one kind
    as of the other, as they have, that is half of the losses here, for all of them alike.
    """

    settings: Settings
    """What was chosen by hand."""


class TaughtLearner(SemiSupervisedLearner, Protocol):
    """A learner with a teacher that follows the network after every step."""

    decay: float
    """Of the teacher's moving average."""
    _teacher: EMATeacher | None = None

    @property
    def teacher(self) -> EMATeacher:
        """The teacher, once there is one."""
        if self._teacher is None:
            raise RuntimeError(f"{type(self).__name__} has no teacher yet. Call start(network) once, before training.")
        return self._teacher

    def start(self, network: Network) -> None:
        """The teacher begins as a copy of ``network``."""
        self._teacher = EMATeacher(network, self.decay)

    def after_step(self, network: Network) -> None:
        """The teacher follows."""
        self.teacher.update(network)

    def state_dict(self) -> dict[str, Any]:
        """The teacher."""
        return self.teacher.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues exactly where ``state`` was taken; call ``start`` first."""
        self.teacher.load_state_dict(state)
