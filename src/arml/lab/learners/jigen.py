"""JiGen: the classes of the sources, and jigsaw puzzles of the same images."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from arml.lab.data.batches import DomainBatch
from arml.lab.data.draws import draw_for
from arml.lab.learners.base import AugmentExamples
from arml.lab.learners.joint_training import (
    DomainLearner,
    all_images,
    all_labels,
    domain_means,
    domain_sizes,
    leave_out_target,
    steering_loss,
)
from arml.lab.models.network import Network
from arml.lab.models.normalisation import watch_statistics
from arml.lab.tasks.jigsaw import Colours, crop_to_grid, draw_orders, grey_tiles, jigsaw, permutation_set, shuffle_tiles

JIGSAW = "jigsaw"
"""Name of the head, and of the task if the puzzles are one."""


@dataclass(frozen=True)
class JiGenSettings:
    """The values in the authors' code for ResNet18."""

    weight: float = 0.7
    """w, the weight of the puzzles relative to the classes."""
    bias: float = 0.9
    """Probability that an image keeps its order whatever was drawn: with 30 permutations, 9.7 % are shuffled."""
    grey: float = 0.1
    """Probability of each tile to turn grey."""
    num_permutations: int = 30
    """Number of permutations in addition to the identity."""
    permutation_seed: int = 0
    """Chooses between equally good sets of permutations."""
    ordered_only: bool = False
    """Whether only images in their own order are classified."""
    colours: Colours | None = None
    """How preprocessing scaled the channels, for grey tiles; ``None``: all in the same way."""
    jigsaw_as_task: bool = False
    """Whether the puzzles of all sources are one more auxiliary task."""
    lr: float = 0.001
    """Learning rate of SGD with momentum 0.9 and weight decay 5e-4."""

    def __post_init__(self) -> None:
        if self.weight < 0:
            raise ValueError(f"JiGen: `weight` should be at least 0. Got {self.weight!r}.")
        for name, value in (("bias", self.bias), ("grey", self.grey)):
            if not 0 <= value <= 1:
                raise ValueError(f"JiGen: `{name}` should be a probability, from 0 to 1. Got {value!r}.")


class JiGen(DomainLearner):
    r"""Learns the classes of the sources' images, some of which are shuffled, and the orders of the shuffled ones.

    With the class loss :math:`C_k` and the puzzle's loss :math:`J_k` of source k, its only loss is

    .. math:: L_k = C_k + w J_k

    so that equal weights give exactly the objective of Carlucci et al., *Domain Generalization by Solving Jigsaw
    Puzzles*, CVPR 2019, and a source that does not help the target loses both. With ``jigsaw_as_task`` the losses are
    :math:`C_k`, and :math:`w \sum_k J_k` as a task of its own; divided by the number of sources, not of tasks, and
    with equal weights, this is the same objective. In both cases the puzzles train the network and steer no weight.

    The target's images are never shuffled, as in the test, and have a pass of their own for the main loss, as in
    :class:`~arml.lab.learners.joint_training.Baseline`: they steer the weights and change nothing else. All images lose
    the rows and columns that do not fit into three tiles of whole pixels.
    """

    train_on_main = False
    calls_trunk = False

    def __init__(self, settings: JiGenSettings, sources: Sequence[str], augment: AugmentExamples) -> None:
        """``sources`` are the names in the batches; ``augment`` changes images before they are cut."""
        if JIGSAW in sources:
            raise ValueError(
                f"JiGen: no source may be called {JIGSAW!r}, the name of a task. Got {', '.join(sources)}."
            )
        self.settings: JiGenSettings = settings
        self.augment = augment
        self.permutations = permutation_set(settings.num_permutations, settings.permutation_seed)
        self.tasks: tuple[str, ...] = (*sources, JIGSAW) if settings.jigsaw_as_task else tuple(sources)
        self.heads: dict[str, int] = {JIGSAW: len(self.permutations)}

    def losses(
        self, network: Network, batch: DomainBatch, step: int, generator: torch.Generator
    ) -> tuple[Tensor | None, dict[str, Tensor]]:
        """One pass over the sources' images, shuffled and not, and one over the target's that leaves no trace."""
        del step
        sources = leave_out_target(batch)
        with draw_for(*domain_sizes(sources)):
            order = self._orders(sources, generator)
            cut = self._grey(self.images(sources, order, generator), generator)
        with watch_statistics(network, needed=len(batch.y) > 0) as statistics:
            features = network.features(shuffle_tiles(cut, self._permutations_on(order.device)[order]))
        classes = self._class_losses(network.head("class", features), order, sources)
        _, puzzles = domain_means(jigsaw(network, features, order), sources)
        main = steering_loss(network, batch, self._target_images, statistics, generator)
        weight = self.settings.weight
        if self.settings.jigsaw_as_task:
            return main, {**classes, JIGSAW: weight * torch.stack(list(puzzles.values())).sum()}
        return main, {name: loss + weight * puzzles[name] for name, loss in classes.items()}

    def images(self, batch: DomainBatch, order: Tensor, generator: torch.Generator) -> Tensor:
        """The images of ``batch``, augmented, cropped for cutting; ``order`` says which ones will be shuffled."""
        del order
        return crop_to_grid(self.augment(all_images(batch), generator))

    def _target_images(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Images of the target, treated as those in their own order."""
        return self._grey(crop_to_grid(self.augment(x, generator)), generator)

    def _permutations_on(self, device: torch.device) -> Tensor:
        self.permutations = self.permutations.to(device)  # once: a copy at every step would wait for the device
        return self.permutations

    def _grey(self, x: Tensor, generator: torch.Generator) -> Tensor:
        return grey_tiles(x, self.settings.grey, generator, self.settings.colours)

    def _orders(self, sources: DomainBatch, generator: torch.Generator) -> Tensor:
        labels = all_labels(sources)
        return draw_orders(len(labels), len(self.permutations), self.settings.bias, generator).to(labels)

    def _class_losses(self, logits: Tensor, order: Tensor, sources: DomainBatch) -> dict[str, Tensor]:
        losses = F.cross_entropy(logits, all_labels(sources), reduction="none")
        if not self.settings.ordered_only:
            return domain_means(losses, sources)[1]
        counted = (order == 0).to(losses)
        _, sums = domain_means(losses * counted, sources)
        _, shares = domain_means(counted, sources)
        # A source whose images are all shuffled has a sum of 0, and a loss of 0.
        return {name: loss / shares[name].clamp(min=1e-6) for name, loss in sums.items()}
