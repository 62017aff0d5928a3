"""FADA: features from which a discriminator cannot tell the target from the sources, class by class."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Adam

from arml.lab.data.batches import DomainBatch
from arml.lab.learners.base import AugmentExamples
from arml.lab.learners.joint_training import DomainLearner, all_domains, all_images, all_labels, class_losses
from arml.lab.models.network import Network, promote_to_float32
from arml.lab.tasks.pairs import confusion, discrimination, discriminator, pair_groups


@dataclass(frozen=True)
class FADASettings:
    """The paper gives no numbers; where public code has one, it is used."""

    gamma: float = 0.2
    """Weight of the confusion relative to the class losses."""
    pretraining: float = 0.5
    """Share of the steps that train on the sources alone (stage 1)."""
    discriminator_updates: int = 100
    """Number of updates of the discriminator alone (stage 2)."""
    hidden: int = 128
    """Number of hidden units of the discriminator."""
    discriminator_lr: float = 0.001
    """Learning rate of the discriminator's own Adam."""
    lr: float = 0.001
    """Learning rate of the network's SGD with momentum 0.9 and weight decay 5e-4."""

    def __post_init__(self) -> None:
        if not 0 < self.pretraining < 1:
            raise ValueError(f"FADA: `pretraining` should be a share between 0 and 1. Got {self.pretraining!r}.")
        if self.gamma < 0:
            raise ValueError(f"FADA: `gamma` should be at least 0. Got {self.gamma!r}.")


class Lesson(NamedTuple):
    """What the discriminator learns from after the step of the network."""

    features: Tensor
    """[B, F], without graph."""
    updates: list[Tensor]
    """The pairs of each update, [4, P, 2]."""

    @staticmethod
    def none() -> "Lesson":
        """Nothing to learn from."""
        return Lesson(torch.empty(0), [])


class _Adversary(NamedTuple):
    """The discriminator and its optimiser."""

    network: nn.Module
    optimizer: Adam


class FADA(DomainLearner):
    r"""The sources, the target's few labelled images, and a game against a discriminator of pairs.

    Motiian et al., *Few-Shot Adversarial Domain Adaptation*, NeurIPS 2017. Pairs of images form four groups:
    :math:`G_1` two sources of the same class, :math:`G_2` source and target of the same class, :math:`G_3` and
    :math:`G_4` the same with different classes. The discriminator D sees the features of both images. Three stages:

    1. The network learns the classes of the sources. There is no main loss, so methods that compare gradients keep
       their weights.
    2. D learns the groups from the features of the last batch; the network rests.
    3. In turns, the network learns :math:`\mathit{main} + \sum_k \alpha_k C_k` while D is constant, with the class
       losses C and

       .. math:: \mathit{main} = C_{target} + \gamma\,[CE(D(G_2), \text{group } 1) + CE(D(G_4), \text{group } 3)],

       and D learns the groups once more, from the features of the same step.

    The confusion is part of the main loss, and so of the gradient that steers the weights: it exists only for the
    target, and only the class losses of sources are weighted. The network's steps should be small enough for D to
    follow: much larger steps than the default drive the domains apart. Two public implementations differ from the paper
    and are not followed: one maximises the loss of D, the other confuses :math:`G_2` with :math:`G_4`.
    """

    needs_whole_batch = True

    def __init__(self, settings: FADASettings, sources: Sequence[str], augment: AugmentExamples, steps: int) -> None:
        """``steps`` is the number of steps of the whole run."""
        if steps < 2:
            raise ValueError(f"FADA has stages and needs at least 2 steps. Got {steps}.")
        self.settings: FADASettings = settings
        self.augment = augment
        self.tasks: tuple[str, ...] = tuple(sources)
        self.heads: dict[str, int] = {}
        self.adapts_from = min(max(1, round(settings.pretraining * steps)), steps - 1)
        """The first step of stage 3."""
        self._adversary: _Adversary | None = None
        self._lesson = Lesson.none()

    @property
    def adversary(self) -> _Adversary:
        """The discriminator and its optimiser; ``start`` creates them."""
        if self._adversary is None:
            raise RuntimeError("FADA has no discriminator yet. Call start(network) once, before training.")
        return self._adversary

    def start(self, network: Network) -> None:
        """Makes the discriminator for the features of ``network``."""
        weight = network.heads["class"].get_parameter("weight")
        made = discriminator(weight.shape[1], self.settings.hidden).to(weight)
        self._adversary = _Adversary(made, Adam(made.parameters(), lr=self.settings.discriminator_lr, fused=True))

    def losses(
        self, network: Network, batch: DomainBatch, step: int, generator: torch.Generator
    ) -> tuple[Tensor | None, dict[str, Tensor]]:
        """One pass over all images at all stages; the discriminator learns in ``after_step``."""
        features = network.features(self.augment(all_images(batch), generator))
        main, aux = class_losses(network.head("class", features), batch)
        # Pairs are drawn here, where the generator is available, and again for every update.
        updates = [_pairs(batch, generator) for _ in range(self._updates_after(step))]
        self._lesson = Lesson(promote_to_float32(features.detach()), updates)
        if step < self.adapts_from:
            return None, aux
        if main is None or not updates[0].numel():
            return main, aux
        return main + self.settings.gamma * confusion(self.adversary.network, features, updates[0]), aux

    def after_step(self, network: Network) -> None:
        """Trains the discriminator on the pairs of this step."""
        del network
        lesson, self._lesson = self._lesson, Lesson.none()
        for pairs in lesson.updates:
            if pairs.numel():
                self._update(lesson.features, pairs)

    def _updates_after(self, step: int) -> int:
        if step >= self.adapts_from:
            return 1
        return self.settings.discriminator_updates if step == self.adapts_from - 1 else 0

    def _update(self, features: Tensor, pairs: Tensor) -> None:
        network, optimizer = self.adversary
        optimizer.zero_grad()
        discrimination(network, features, pairs).backward()
        optimizer.step()

    def state_dict(self) -> dict[str, Any]:
        """The states of the discriminator and its optimiser."""
        return {name: part.state_dict() for name, part in self.adversary._asdict().items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues exactly from ``state``; call ``start`` first."""
        for name, part in self.adversary._asdict().items():
            part.load_state_dict(state[name])


def _pairs(batch: DomainBatch, generator: torch.Generator) -> Tensor:
    return pair_groups(all_labels(batch), all_domains(batch) == 0, generator)
