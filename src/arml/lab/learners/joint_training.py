"""Labelled images of several source domains, and few or none of the target."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from arml.lab.data.batches import DomainBatch
from arml.lab.data.draws import draw_for
from arml.lab.learners.base import AugmentExamples, Learner, Settings
from arml.lab.models.network import Network
from arml.lab.models.normalisation import Statistics, normalise_by, watch_statistics
from arml.lab.tasks.classify import classify


class DomainLearner(Learner[DomainBatch], Protocol):
    """A learner from sources, one auxiliary task each, for a target, the main task.

    Losses are not divided by the number of sources S: with ``aux_scale = 1 / S``, equal weights give the loss of the
    pooled sources.
    """

    settings: Settings
    """The values chosen by hand."""
    adapts_from: int = 0
    """The first step of adaptation to the target; networks before it are not candidates for the test."""
    train_on_main: bool = True
    """Whether the network learns from the target's labels; if not, they only steer the weights of the sources."""

    def validation_network(self, network: Network, source: str) -> Network:
        """The network that classifies validation images of ``source``."""
        del source
        return network


@dataclass(frozen=True)
class DomainSettings:
    """The learning rate is the only setting."""

    lr: float = 0.001
    """Learning rate of SGD with momentum 0.9 and weight decay 5e-4; the paper gives the first, JiGen's code all."""


class SourceTasks(DomainLearner):
    """One class loss per source, and the target's as the main loss.

    The images of all domains go through the network together, and BatchNorm's statistics are those of all of them: the
    few images of the target alone would be a tiny batch, soon learned by heart.
    """

    def __init__(self, settings: DomainSettings, sources: Sequence[str], augment: AugmentExamples) -> None:
        """``sources`` are the names in the batches; ``augment`` changes the images of every domain."""
        self.settings: DomainSettings = settings
        self.augment = augment
        self.tasks: tuple[str, ...] = tuple(sources)
        self.heads: dict[str, int] = {}

    def losses(
        self, network: Network, batch: DomainBatch, step: int, generator: torch.Generator
    ) -> tuple[Tensor | None, dict[str, Tensor]]:
        """One pass over all images."""
        del step
        with draw_for(*domain_sizes(batch)):
            return class_losses(network(self.augment(all_images(batch), generator)), batch)


class Baseline(SourceTasks):
    """The sources pooled, "DeepAll": the target's labels steer the weights of the sources and train nothing.

    "Baseline" and "Baseline + ARML" in Shi et al., *Auxiliary Task Reweighting for Minimum-data Learning*, NeurIPS
    2020: the target has no data for the first, and the gain of the second "completely comes from task reweighting".
    So the target's images have a pass of their own, see :func:`steering_loss`, and nothing that trains or tests the
    network depends on them but the weights. A batch without them gives the same losses of the sources.
    """

    train_on_main = False
    calls_trunk = False

    def losses(
        self, network: Network, batch: DomainBatch, step: int, generator: torch.Generator
    ) -> tuple[Tensor | None, dict[str, Tensor]]:
        """One pass over the sources' images, and one over the target's that leaves no trace."""
        del step
        sources = leave_out_target(batch)
        with watch_statistics(network, needed=len(batch.y) > 0) as statistics, draw_for(*domain_sizes(sources)):
            logits = network(self.augment(all_images(sources), generator))
        _, aux = class_losses(logits, sources)
        return steering_loss(network, batch, self.augment, statistics, generator), aux


class JointTraining(SourceTasks):
    """The sources together with the target's few labelled images: "JT" and "JT + ARML" in Shi et al."""


class TargetOnly(DomainLearner):
    """The target's few labelled images alone: "main task only"."""

    def __init__(self, settings: DomainSettings, augment: AugmentExamples) -> None:
        self.settings: DomainSettings = settings
        self.augment = augment
        self.tasks: tuple[str, ...] = ()
        self.heads: dict[str, int] = {}

    def losses(
        self, network: Network, batch: DomainBatch, step: int, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The main loss only, from a pass without the sources."""
        del step
        if not len(batch.y):
            raise ValueError("Learning from the target alone needs labelled images of it, got none. Ask for shots.")
        return classify(network, self.augment(batch.x, generator), batch.y), {}


def leave_out_target(batch: DomainBatch) -> DomainBatch:
    """The batch without the target's images."""
    return batch._replace(x=batch.x[:0], y=batch.y[:0])


def steering_loss(
    network: Network, batch: DomainBatch, augment: AugmentExamples, statistics: Statistics, generator: torch.Generator
) -> Tensor | None:
    """The target's loss, for learners that it steers and does not train; ``None`` without images of the target.

    BatchNorm normalises the target's images by ``statistics``, those of the sources, as in the test. They would be a
    tiny batch of their own, and in a batch with the sources they would change the sources' features and the running
    statistics. ``generator`` is copied: what is drawn for the sources does not depend on the target's images.
    """
    if not len(batch.y):
        return None
    copy = torch.Generator(device=generator.device)
    copy.set_state(generator.get_state())
    with normalise_by(statistics):
        return classify(network, augment(batch.x, copy), batch.y)


def all_images(batch: DomainBatch) -> Tensor:
    """The images of all domains in one tensor, the target's first."""
    return torch.cat([batch.x, *(x for x, _ in batch.sources.values())])


def all_labels(batch: DomainBatch) -> Tensor:
    """The labels of :func:`all_images`."""
    return torch.cat([batch.y, *(y for _, y in batch.sources.values())])


def all_domains(batch: DomainBatch) -> Tensor:
    """The domains of the images of :func:`all_images`: 0 is the target, then the sources in their order.

    >>> two, three = torch.zeros(2, dtype=torch.int64), torch.zeros(3, dtype=torch.int64)
    >>> all_domains(DomainBatch(two, two, {"photo": (three, three)}))
    tensor([0, 0, 1, 1, 1])
    """
    return torch.repeat_interleave(torch.tensor(domain_sizes(batch))).to(batch.y.device)


def class_losses(logits: Tensor, batch: DomainBatch) -> tuple[Tensor | None, dict[str, Tensor]]:
    """The mean cross-entropy of every domain, from the class logits of :func:`all_images`."""
    return domain_means(F.cross_entropy(logits, all_labels(batch), reduction="none"), batch)


def domain_means(values: Tensor, batch: DomainBatch) -> tuple[Tensor | None, dict[str, Tensor]]:
    """The mean of ``values``, one per image of :func:`all_images`, over the target's images and over every source's.

    ``None`` for a target without images.
    """
    target, *sources = values.split(domain_sizes(batch))
    means = {name: part.mean() for name, part in zip(batch.sources, sources, strict=True)}
    return (target.mean() if len(target) else None), means


def domain_sizes(batch: DomainBatch) -> list[int]:
    """The number of images of every domain, the target first."""
    return [len(batch.y), *(len(y) for _, y in batch.sources.values())]
