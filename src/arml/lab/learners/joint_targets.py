"""Many targets of the same examples, one of them with few labels."""

import torch
from torch import Tensor

from arml.lab.data.batches import AttributeBatch
from arml.lab.data.draws import draw_for
from arml.lab.learners.base import AugmentExamples, Learner
from arml.lab.models.network import Network
from arml.lab.tasks.attributes import Attributes


def no_augmentation(x: Tensor, generator: torch.Generator) -> Tensor:
    """No augmentation: rows of a table stay as they are."""
    del generator
    return x


class MainTarget(Learner[AttributeBatch]):
    """The main target alone, on the examples that have its label: "main task only"."""

    def __init__(self, main: Attributes, augment: AugmentExamples) -> None:
        """``main`` holds one target, which the head ``"class"`` answers."""
        self.main, self.augment = main, augment
        self.tasks: tuple[str, ...] = ()
        self.heads: dict[str, int] = {}

    def losses(
        self, network: Network, batch: AttributeBatch, step: int, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The main loss only."""
        del step
        return main_loss(self.main, network(self.augment(batch.x, generator)), batch.y), {}


class JointTargets(Learner[AttributeBatch]):
    """The main target on its few examples, every other target on all training examples, with or without a main label.

    One pass over both kinds of examples, so that BatchNorm's statistics are those of all examples: the few labelled
    ones are soon learned by heart and do not represent the rest.
    """

    def __init__(self, main: Attributes, aux: Attributes, augment: AugmentExamples) -> None:
        """``main`` belongs to the head ``"class"``; the head ``"aux"`` holds the outputs of all targets of ``aux``."""
        self.main, self.aux, self.augment = main, aux, augment
        self.tasks: tuple[str, ...] = tuple(aux.targets)
        self.heads: dict[str, int] = {"aux": aux.num_outputs}

    def losses(
        self, network: Network, batch: AttributeBatch, step: int, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The main loss, and one loss per other target with a label in the batch."""
        del step
        with draw_for(len(batch.x), len(batch.aux_x)):
            features = network.features(self.augment(torch.cat([batch.x, batch.aux_x]), generator))
        few, many = features[: len(batch.x)], features[len(batch.x) :]
        main = main_loss(self.main, network.head("class", few), batch.y)
        return main, self.aux.losses(network.head("aux", many), batch.aux_y, batch.aux_counts)


def main_loss(main: Attributes, outputs: Tensor, labels: Tensor) -> Tensor:
    """The loss of the one target in ``main``; all ``labels`` [B] are present."""
    (loss,) = main.losses(outputs, labels.unsqueeze(1), torch.tensor([len(labels)])).values()
    return loss
