"""Learning from the labelled images alone."""

from dataclasses import dataclass

import torch
from torch import Tensor

from arml.lab.data.augment import Augment
from arml.lab.data.batches import Batch
from arml.lab.learners.base import SemiSupervisedLearner
from arml.lab.models.network import Network
from arml.lab.tasks.classify import classify


@dataclass(frozen=True)
class SupervisedSettings:
    """The learning rate is the only setting."""

    lr: float = 0.003
    """Learning rate of Adam, from Oliver et al.; ARML's release has 0.005."""


class Supervised(SemiSupervisedLearner):
    """Cross-entropy on augmented labelled images; unlabelled images are not used."""

    def __init__(self, settings: SupervisedSettings, augment: Augment) -> None:
        self.settings: SupervisedSettings = settings
        self.augment = augment
        self.tasks: tuple[str, ...] = ()
        self.heads: dict[str, int] = {}

    def losses(
        self, network: Network, batch: Batch, step: int, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The main loss only."""
        del step
        return classify(network, self.augment(batch.x, generator), batch.y), {}
