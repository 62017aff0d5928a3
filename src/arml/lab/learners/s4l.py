"""S4L: self-supervised tasks on all images, classification of the labelled ones."""

from dataclasses import dataclass

import torch
from torch import Tensor

from arml.lab.data.augment import Augment
from arml.lab.data.batches import Batch
from arml.lab.data.draws import draw_for
from arml.lab.learners.base import TaughtLearner
from arml.lab.models.network import Network
from arml.lab.tasks.classify import classify_with_unlabelled
from arml.lab.tasks.exemplar import distort, exemplar
from arml.lab.tasks.rotation import rotation

TASKS = ("rotation", "exemplar")


@dataclass(frozen=True)
class S4LSettings:
    """The values of ARML's release, and the tasks as the paper describes them."""

    tasks: tuple[str, ...] = TASKS
    """Which of the two tasks to use."""
    decay: float = 0.95
    """Decay of the moving average that is the exemplar task's teacher."""
    noise: float = 0.03
    """Noise of the exemplar task, as a share of half the range of values."""
    augment_student: bool = False
    """Whether the main task's augmentation follows the exemplar task's own. The paper names flips, noise and Cutout
    alone; in the release the network augments whatever it is given, so that shifts and more noise are added."""
    exemplar_offset: float = 1.0
    """o in the exemplar task's loss o - cos, which changes no gradient. Methods that divide by losses see it: the
    weight of AdaLoss is 1 / (o - cos). The smallest that keeps the loss from falling below 0 is 1; the release, whose
    loss is half of ours before it adds 1, has 2."""
    lr: float = 0.005
    """Learning rate of Adam."""

    def __post_init__(self) -> None:
        unknown = [name for name in self.tasks if name not in TASKS]
        if unknown or not self.tasks:
            raise ValueError(f"S4L: `tasks` should be some of {', '.join(TASKS)}. Got {self.tasks!r}.")
        if self.exemplar_offset < 1:
            raise ValueError(
                f"S4L: `exemplar_offset` should be at least 1: no loss may be negative. Got {self.exemplar_offset!r}."
            )


class S4L(TaughtLearner):
    """Rotation and Exemplar-MT on labelled and unlabelled images, classification of labelled ones.

    Zhai et al., *S4L*, ICCV 2019, in the form of Shi et al., *Auxiliary Task Reweighting for Minimum-data Learning*,
    NeurIPS 2020: only upright images are classified, and the auxiliary losses are not ramped. Their release divides the
    main loss by the number of all images and halves the auxiliary losses: every loss is half of the loss here.
    """

    def __init__(self, settings: S4LSettings, augment: Augment) -> None:
        self.settings: S4LSettings = settings
        self.augment, self.decay = augment, settings.decay
        self.tasks: tuple[str, ...] = settings.tasks
        self.heads: dict[str, int] = {"rotation": 4} if "rotation" in settings.tasks else {}

    def losses(
        self, network: Network, batch: Batch, step: int, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The main pass, one for rotation, and one each of network and teacher for exemplar."""
        del step
        x, u = self.augment(batch.x, generator), self.augment(batch.u, generator)
        # Unlabelled images are in the main pass for BatchNorm, as in the release and in the other learners: labelled
        # ones are too few and too well fitted to represent all images.
        main, _ = classify_with_unlabelled(network, x, batch.y, u)
        with draw_for(len(batch.x), len(batch.u)):
            return main, self._aux(network, torch.cat([batch.x, batch.u]), generator)

    def _aux(self, network: Network, images: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
        aux = {}
        if "rotation" in self.tasks:
            aux["rotation"] = rotation(network, self.augment(images, generator))
        if "exemplar" in self.tasks:
            distorted = distort(images, generator, strength=self.settings.noise)
            view = self.augment(images, generator)
            if self.settings.augment_student:
                distorted = self.augment(distorted, generator)
            aux["exemplar"] = exemplar(network, self.teacher, view, distorted, offset=self.settings.exemplar_offset)
        return aux
