"""Pseudo-Label: a confident prediction counts as a label."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from arml.lab.data.augment import Augment
from arml.lab.data.batches import Batch
from arml.lab.learners.base import SemiSupervisedLearner
from arml.lab.learners.ramp import ramp_up
from arml.lab.models.network import Network
from arml.lab.tasks.classify import classify_with_unlabelled


@dataclass(frozen=True)
class PseudoLabelSettings:
    """The values tuned by Oliver et al."""

    threshold: float = 0.95
    """Probability above which the most likely class counts as a label."""
    max_weight: float = 1.0
    """Weight of the loss after the ramp."""
    ramp_steps: int = 80_000
    """Length of the ramp, 0.4 of the steps of a run."""
    lr: float = 0.0003
    """Learning rate of Adam."""


class PseudoLabel(SemiSupervisedLearner):
    r"""Cross-entropy with the most likely class of unlabelled images, where it is likely enough.

    .. math:: w(t)\ \mathrm{mean}_u\ 1[\max_c p_c > \mathit{threshold}]\ (-\log \max_c p_c)

    Lee, *Pseudo-Label*, ICML workshop 2013, with the threshold of Oliver et al. Their target is
    softmax(10 x one-hot), and below the threshold the prediction itself, which has no gradient. The PyTorch port behind
    ARML's release multiplies the one-hot probability by 10, which makes the loss ten times as large.
    """

    def __init__(self, settings: PseudoLabelSettings, augment: Augment) -> None:
        self.settings: PseudoLabelSettings = settings
        self.augment = augment
        self.tasks: tuple[str, ...] = ("pseudo_label",)
        self.heads: dict[str, int] = {}

    def losses(
        self, network: Network, batch: Batch, step: int, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """One pass gives both the labels and the predictions compared with them."""
        x, u = self.augment(batch.x, generator), self.augment(batch.u, generator)
        main, logits = classify_with_unlabelled(network, x, batch.y, u)
        probability, label = logits.detach().softmax(1).max(1)
        sure = (probability > self.settings.threshold).to(logits.dtype)
        loss = (sure * F.cross_entropy(logits, label, reduction="none")).mean()
        return main, {"pseudo_label": ramp_up(step, self.settings.max_weight, self.settings.ramp_steps) * loss}
