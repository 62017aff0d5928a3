"""D-SAM: one trunk, and one aggregation module per source."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from arml.lab.data.batches import DomainBatch
from arml.lab.learners.base import AugmentExamples
from arml.lab.learners.joint_training import DomainLearner
from arml.lab.models.aggregation import AggregatedNetwork, aggregated_network
from arml.lab.models.network import Network, Trunk


@dataclass(frozen=True)
class DSAMSettings:
    """The values in the authors' code for ResNet18."""

    dropout: float = 0.5
    """Share of channels dropped in the aggregation modules."""
    lr: float = 0.001
    """Learning rate of SGD with momentum 0.9 and weight decay 5e-4."""


class DSAM(DomainLearner):
    """Classifies images of each source by its own module, and those of the target by the mean of all modules.

    D'Innocente and Caputo, *Domain Generalization with Domain-Specific Aggregation Modules*, GCPR 2018. The loss is the
    mean over the images of all sources. As a method of domain generalisation it has no auxiliary tasks to weight, and
    does not use the target's images. On validation images of a source, the mean is over the modules of the others.
    """

    train_on_main = False
    calls_trunk = False

    def __init__(self, settings: DSAMSettings, sources: Sequence[str], augment: AugmentExamples) -> None:
        """``sources`` are the names in the batches."""
        if len(sources) < 2:
            raise ValueError(f"D-SAM is validated by the modules of other sources: name two or more. Got {sources!r}.")
        self.settings: DSAMSettings = settings
        self.sources, self.augment = tuple(sources), augment
        self.tasks: tuple[str, ...] = ()
        self.heads: dict[str, int] = {}

    def network(self, trunk: Trunk, num_classes: int) -> AggregatedNetwork:
        """A network with one aggregation module per source."""
        return aggregated_network(trunk, num_classes, self.sources, dropout=self.settings.dropout)

    def losses(
        self, network: Network, batch: DomainBatch, step: int, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """One loss over all sources, in the place of the main one."""
        del step
        images = {name: self.augment(x, generator) for name, (x, _) in batch.sources.items()}
        logits = torch.cat(list(_require_aggregated(network).route(images, generator).values()))
        return F.cross_entropy(logits, torch.cat([y for _, y in batch.sources.values()])), {}

    def validation_network(self, network: Network, source: str) -> Network:
        """The mean of the modules of all other sources."""
        return _require_aggregated(network).leave_out(source)


def _require_aggregated(network: Network) -> AggregatedNetwork:
    if not isinstance(network, AggregatedNetwork):
        raise TypeError(
            f"D-SAM trains a network with aggregation modules. Got {type(network).__name__}. Make it with "
            "DSAM.network(trunk, num_classes)."
        )
    return network
