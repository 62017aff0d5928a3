"""Mean Teacher: the network should agree with its own moving average."""

from dataclasses import dataclass

import torch
from torch import Tensor

from arml.lab.data.augment import Augment
from arml.lab.data.batches import Batch
from arml.lab.learners.base import TaughtLearner
from arml.lab.learners.distances import squared_difference
from arml.lab.learners.ramp import ramp_up
from arml.lab.models.network import Network
from arml.lab.tasks.classify import classify_with_unlabelled


@dataclass(frozen=True)
class MeanTeacherSettings:
    """The values tuned by Oliver et al."""

    max_weight: float = 8.0
    """Weight of the consistency loss after the ramp."""
    ramp_steps: int = 80_000
    """Length of the ramp, 0.4 of the steps of a run."""
    decay: float = 0.95
    """Decay of the teacher's moving average."""
    lr: float = 0.0004
    """Learning rate of Adam; ARML's release has 0.0007."""


class MeanTeacher(TaughtLearner):
    r"""Network and teacher, each with its own augmentation of unlabelled images, should agree.

    .. math:: w(t)\ \mathrm{mean}_u\, \mathrm{mean}_c\, (p - \mathrm{stop}\, p')^2

    with p' from the teacher, an exponential moving average of the network. Tarvainen and Valpola, *Mean teachers are
    better role models*, NeurIPS 2017, in the form of Oliver et al., NeurIPS 2018. The student is tested, not the
    teacher.
    """

    def __init__(self, settings: MeanTeacherSettings, augment: Augment) -> None:
        self.settings: MeanTeacherSettings = settings
        self.augment, self.decay = augment, settings.decay
        self.tasks: tuple[str, ...] = ("consistency",)
        self.heads: dict[str, int] = {}

    def losses(
        self, network: Network, batch: Batch, step: int, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Two passes: the main one, which also gives p, and the teacher's."""
        x, u, again = (self.augment(images, generator) for images in (batch.x, batch.u, batch.u))
        main, student = classify_with_unlabelled(network, x, batch.y, u)
        consistency = squared_difference(student, self.teacher.logits(again)).mean()
        weight = ramp_up(step, self.settings.max_weight, self.settings.ramp_steps)
        return main, {"consistency": weight * consistency}
