"""The Pi-Model: an image should keep its class under another augmentation."""

from dataclasses import dataclass

import torch
from torch import Tensor

from arml.lab.data.augment import Augment
from arml.lab.data.batches import Batch
from arml.lab.learners.base import SemiSupervisedLearner
from arml.lab.learners.distances import squared_difference
from arml.lab.learners.ramp import ramp_up
from arml.lab.models.network import Network, keep_statistics
from arml.lab.tasks.classify import classify_with_unlabelled


@dataclass(frozen=True)
class PiModelSettings:
    """The values tuned by Oliver et al."""

    max_weight: float = 20.0
    """Weight of the consistency loss after the ramp."""
    ramp_steps: int = 80_000
    """Length of the ramp, 0.4 of the steps of a run."""
    lr: float = 0.0003
    """Learning rate of Adam."""


class PiModel(SemiSupervisedLearner):
    r"""Two passes over unlabelled images, each with its own augmentation, should agree.

    .. math:: w(t)\ \mathrm{mean}_u\, \mathrm{mean}_c\, (p_1 - \mathrm{stop}\, p_2)^2

    Laine and Aila, *Temporal Ensembling for Semi-Supervised Learning*, ICLR 2017, in the form of Oliver et al.,
    NeurIPS 2018. Their second pass includes the labelled images, for BatchNorm only; here it does not.
    """

    def __init__(self, settings: PiModelSettings, augment: Augment) -> None:
        self.settings: PiModelSettings = settings
        self.augment = augment
        self.tasks: tuple[str, ...] = ("consistency",)
        self.heads: dict[str, int] = {}

    def losses(
        self, network: Network, batch: Batch, step: int, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Two passes: the main one, which also gives p_1, and one without gradients for p_2."""
        x, u, again = (self.augment(images, generator) for images in (batch.x, batch.u, batch.u))
        main, first = classify_with_unlabelled(network, x, batch.y, u)
        with torch.no_grad(), keep_statistics(network):
            second = network(again)
        # Dual numbers pass through no_grad: detaching makes the target a constant for them as well.
        consistency = squared_difference(first, second.detach()).mean()
        weight = ramp_up(step, self.settings.max_weight, self.settings.ramp_steps)
        return main, {"consistency": weight * consistency}
