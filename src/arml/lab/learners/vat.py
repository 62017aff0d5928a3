"""Virtual adversarial training, with or without entropy minimisation."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from arml.gradients.backward import differentiate
from arml.lab.data.augment import Augment
from arml.lab.data.batches import Batch
from arml.lab.data.draws import draw_normal
from arml.lab.learners.base import SemiSupervisedLearner
from arml.lab.learners.distances import entropy, kl
from arml.lab.learners.ramp import ramp_up
from arml.lab.models.network import Network, keep_statistics
from arml.lab.tasks.classify import classify_with_unlabelled

RECIPE_XI = 1e-6
"""The step of the finite difference in the published recipes, which float32 rounds away."""


@dataclass(frozen=True)
class VATSettings:
    """The values tuned by Oliver et al."""

    epsilon: float = 6.0
    """Length of the perturbation: 6 for whitened CIFAR-10, 1 for SVHN in [-1, 1]."""
    xi: float = 1e-2
    """Step of the finite difference that finds the direction of the perturbation.

    The formula wants a small one, but float32 rounds the difference over :data:`RECIPE_XI` away, and the direction
    hardly resembles that of float64. With 1e-2 their mean cosine is above 0.99 on the networks of the tests.
    """
    divergence: Literal["oliver", "miyato"] = "oliver"
    """The order of the arguments of KL: oliver KL(p(u + r) || p(u)), miyato KL(p(u) || p(u + r))."""
    entropy: float = 0.0
    """Factor lambda on the entropy, not ramped; 0: plain VAT, 0.06: VAT + EntMin."""
    max_weight: float = 0.3
    """Weight of the adversarial loss after the ramp."""
    ramp_steps: int = 80_000
    """Length of the ramp, 0.4 of the steps of a run."""
    lr: float = 0.003
    """Learning rate of Adam."""

    def __post_init__(self) -> None:
        if self.divergence not in ("oliver", "miyato"):
            raise ValueError(f"VAT: `divergence` should be 'oliver' or 'miyato'. Got {self.divergence!r}.")
        if self.entropy < 0:
            raise ValueError(f"VAT: `entropy` should be at least 0. Got {self.entropy!r}.")


class VAT(SemiSupervisedLearner):
    r"""Predictions should not change along the direction in which they change most.

    .. math::
        w(t)\ \mathrm{mean}_u\, KL(p(u + r)\, \|\, \mathrm{stop}\, p(u)), \quad
        r = \epsilon\, \overline{\nabla_d KL(p(u) \| p(u + \xi d))}, \quad
        \lambda\ \mathrm{mean}_u\, H(p(u))

    Miyato et al., *Virtual Adversarial Training*, TPAMI 2018, with one power iteration; entropy minimisation after
    Grandvalet and Bengio, NIPS 2004. The arguments of KL are swapped as in Oliver et al., who found it to work
    better.

    Departures from Oliver et al.: images are augmented once, then perturbed, so that r meets the image it was found
    for; the entropy is that of clean images, with lambda 0.06 as in their paper (their run files have 0.1); xi is 1e-2
    instead of their 1e-6, so that r in float32 is what the formula says. No method learns the weights of the two
    losses: they are part of the recipe.
    """

    def __init__(self, settings: VATSettings, augment: Augment) -> None:
        self.settings: VATSettings = settings
        self.augment = augment
        self.tasks: tuple[str, ...] = ("adversarial", "entropy") if settings.entropy > 0 else ("adversarial",)
        self.heads: dict[str, int] = {}

    def losses(
        self, network: Network, batch: Batch, step: int, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Four passes: the main one, two for the direction, one for the perturbed images."""
        x, u = self.augment(batch.x, generator), self.augment(batch.u, generator)
        main, logits = classify_with_unlabelled(network, x, batch.y, u)
        with keep_statistics(network):
            clean, r = perturbation(network, u, self.settings, generator)
            perturbed = network(u + r)
        pair = (perturbed, clean) if self.settings.divergence == "oliver" else (clean, perturbed)
        weight = ramp_up(step, self.settings.max_weight, self.settings.ramp_steps)
        aux = {"adversarial": weight * kl(*pair).mean()}
        if self.settings.entropy > 0:
            aux["entropy"] = self.settings.entropy * entropy(logits).mean()
        return main, aux


def perturbation(
    network: Network, u: Tensor, settings: VATSettings, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Clean logits of ``u``, and r of length ``settings.epsilon`` for each image; both are constants.

    Call it inside ``keep_statistics``. The finite difference is below the resolution of half precision, so it is taken
    without autocast.
    """
    drawn = draw_normal(u.shape, generator)
    d = settings.xi * _normalise(drawn.to(u))
    with torch.autocast(u.device.type, enabled=False):
        # A separate pass: with labelled images in its batch, the main pass would differ from the next one through
        # BatchNorm even at d = 0, and the direction would follow that difference.
        with torch.no_grad():
            clean = network(u).detach()
        with torch.enable_grad():
            d.requires_grad_()
            (slope,) = differentiate(kl(clean, network(u + d)).sum(), [d], create_graph=False)
    return clean, settings.epsilon * _normalise(slope).detach()


def _normalise(d: Tensor) -> Tensor:
    """Scales every image of ``d`` to length 1; zeros stay zeros."""
    tiny, places = torch.finfo(d.dtype).tiny, tuple(range(1, d.ndim))
    # By the largest entry first: the squares of finite differences would underflow.
    d = d / d.abs().amax(places, keepdim=True).clamp(min=tiny)
    return d / d.square().sum(places, keepdim=True).sqrt().clamp(min=tiny)
