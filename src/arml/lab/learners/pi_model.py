"""The Pi-Model: an image keeps its class when augmented anew."""

from dataclasses import dataclass

import torch
from torch import Tensor

from arml.lab.data.augment import Augment
from arml.lab.data.batches import Batch
from arml.lab.learners.base import SemiSupervisedLearner
from arml.lab.learners.distances import squared_difference
from arml.lab.learners.ramp import ramp_up
from arml.lab.models.network import Network, statistics_kept
from arml.lab.tasks.classify import classify_beside


@dataclass(frozen=True)
class PiModelSettings:
    """As tuned by Oliver et al."""

    max_weight: float = 20.0
    """Of the consistency loss, after the ramp."""
    ramp_steps: int = 80_000
    """0.4 of the steps of a run."""
    lr: float = 0.0003
    """Of Adam."""


class PiModel(SemiSupervisedLearner):
    r"""Two passes over unlabelled images, each with its own augmentation, should agree.

    .. math:: w(t)\ \mathrm{mean}_u\, \mathrm{mean}_c\, (p_1 - \mathrm{stop}\, p_2)^2

    Laine and Aila, *Temporal Ensembling for Semi-Supervised Learning*, ICLR 2017, in the form of Oliver et al.,
    NeurIPS 2018. In the second pass they have the labelled images, too, which only BatchNorm sees; it is left out here.
    """

    def __init__(self, settings: PiModelSettings, augment: Augment) -> None:
        self.settings: PiModelSettings = settings
        self.augment = augment
        self.tasks: tuple[str, ...] = ("consistency",)
        self.heads: dict[str, int] = {}

    def losses(
        self, network: Network, batch: Batch, step: int, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Two passes: the main one, which also gives p1, and one without gradients for p2."""
        x, u, again = (self.augment(images, generator) for images in (batch.x, batch.u, batch.u))
        main, first = classify_beside(network, x, batch.y, u)
        with torch.no_grad(), statistics_kept(network):
            second = network(again)
        # Dual numbers pass through no_grad: detaching makes the target a constant for them, too.
        consistency = squared_difference(first, second.detach()).mean()
        weight = ramp_up(step, self.settings.max_weight, self.settings.ramp_steps)
        return main, {"consistency": weight * consistency}
