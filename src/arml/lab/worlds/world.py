"""What a world is: a main task with few labels, auxiliary tasks, and the truth about which of them help."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from torch import Tensor
from torch.nn import functional as F

from arml.lab.data.targets import Target
from arml.lab.models.network import Network

Tier = Literal["dev", "test", "own"]
"""Worlds to choose defaults with, worlds for the published table, and worlds made from a user's own data."""
Kind = Literal[
    "all help",
    "some mislead",
    "all mislead",
    "noise",
    "one good",
    "twice",
    "other units",
    "loss scales",
    "pretext",
    "real",
]
"""What a world is about. Nobody knows the truth of a real one."""


@dataclass(frozen=True, eq=False)
class WorldTask:
    """The examples of a task and what to learn from them.

    The loss is the mean over examples of the cross-entropy, or of (z - unit y)^2 for a number y, times ``scale``.
    """

    x: Tensor
    """Examples, float, [N, ...]."""
    target: Target
    """Their answers, all present; a number has mean 0 and variance 1."""
    head: str
    """The head that answers: ``"class"`` is the main task's own."""
    unit: float = 1.0
    """Size of a number: its standard deviation in the units in which it is given."""
    natural_unit: float = 1.0
    """The size with which it helps most; the oracle has it in this size."""
    scale: float = 1.0
    """A constant factor of the loss."""

    def loss(self, outputs: Tensor, answers: Tensor) -> Tensor:
        """The loss of ``outputs`` [B, target.num_outputs] for ``answers`` [B], which are rows of ``target.values``."""
        if self.target.is_numeric:
            loss = F.mse_loss(outputs[:, 0], self.unit * answers)
        elif self.target.is_binary:
            loss = F.binary_cross_entropy_with_logits(outputs[:, 0], answers)
        else:
            loss = F.cross_entropy(outputs, answers.long())
        return loss if self.scale == 1 else self.scale * loss

    def loss_of_features(self, network: Network, features: Tensor, answers: Tensor) -> Tensor:
        """The loss of ``network`` for examples with these ``features`` and ``answers``."""
        return self.loss(network.head(self.head, features), answers)

    def in_natural_units(self) -> "WorldTask":
        """The same task without a factor, and its numbers in their natural size."""
        return replace(self, unit=self.natural_unit, scale=1.0)


@dataclass(frozen=True, eq=False)
class Views(WorldTask):
    """The answer to an example is another view of it, and the loss is 1 - the cosine of their features.

    It needs no head, is close to 0 from the start, and still moves the network.
    """

    def loss_of_features(self, network: Network, features: Tensor, answers: Tensor) -> Tensor:
        """The mean of 1 - cos(f, f'), with f' = f(answers) held fixed."""
        fixed = network.features(answers).detach()
        return self.scale * (1 - F.cosine_similarity(features, fixed, dim=1)).mean()


class MainExamples(NamedTuple):
    """Examples of the main task."""

    x: Tensor
    y: Tensor


@dataclass(frozen=True, eq=False)
class WorldData:
    """The data of a world for one seed."""

    main: WorldTask
    """The main task on its few labelled examples."""
    aux: dict[str, WorldTask]
    validation: MainExamples
    """For curves; nothing is chosen by it."""
    test: MainExamples


@dataclass(frozen=True, eq=False)
class World:
    """A small problem in which it is known which auxiliary tasks help."""

    name: str
    tier: Tier
    kind: Kind
    helpful: tuple[str, ...]
    """The tasks that help, by construction; empty in a real world, too."""
    others: tuple[str, ...]
    """All other tasks: those that do not help, or the tasks of a real world."""
    make: Callable[[int], WorldData]
    """The data for a seed: which examples have labels, which are tested, and all that is drawn at random."""
    network: str = "mlp-64"
    steps: int = 250
    """Number of training steps."""
    labels: int = 20
    """Labelled examples of the main task."""
    batch_main: int = 20
    batch_aux: int = 20
    """Examples per step of each auxiliary task."""

    @property
    def knows_truth(self) -> bool:
        """Whether it is known by construction which tasks help."""
        return self.kind != "real"
