"""Minibatches make gradients noisy, and the squared length of a noisy gradient is too large on average."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from arml.theory.answers import minimise_over_simplex
from arml.theory.checks import Array
from arml.theory.failures.contenders import AGREEMENT, GATED, PAPER, SCALE_FREE, Contender
from arml.theory.failures.training import train
from arml.theory.gaussian import Quadratic

GRADIENTS = np.array([[1.0, 0.0], [0.7, 0.1], [0.1, 0.6]])
"""At a fixed theta: the main gradient, one that points the same way, and one that hardly does."""
CONTENDERS = (PAPER, SCALE_FREE, GATED, AGREEMENT)


class Minibatch(NamedTuple):
    """The weight of the task that agrees, against the noise of its gradient."""

    noises: list[float]
    """Standard deviation of each entry of its gradient."""
    without_noise: float
    """The weight with the least squared distance, exact."""
    expected: list[float]
    """The weight with the least expected squared distance of noisy gradients, exact."""
    measured: dict[str, list[float]]
    """What real updates found, by method, as a share of all weights times K."""


def biased_objective(gradients: ArrayLike, variances: ArrayLike, alpha: ArrayLike) -> float:
    r"""The expectation of :math:`\|\tilde g_0 - \sum_k \alpha_k \tilde g_k\|^2` for gradients with independent noise.

    .. math:: \|g_0 - \sum_k \alpha_k g_k\|^2 + s_0^2 + \sum_k \alpha_k^2 s_k^2

    where :math:`s_k^2` is the total variance of task k's gradient. The last term is what minibatches add: it pulls
    weight away from tasks with noisy gradients, whatever they teach.
    """
    g, c = np.asarray(gradients, dtype=float), np.concatenate([[1.0], -np.asarray(alpha, dtype=float)])
    return float(np.sum((c @ g) ** 2) + c**2 @ np.asarray(variances, dtype=float))


def biased_weights(gradients: Array, variances: ArrayLike) -> Array:
    """The weights [K] that noisy gradients lead to."""
    return minimise_over_simplex(lambda alpha: biased_objective(gradients, variances, alpha), len(gradients) - 1)


def sweep_noise(noises: Sequence[float], steps: int, seed: int) -> Minibatch:
    """Real updates at a fixed theta, with noise on the gradient of the task that agrees."""
    size = GRADIENTS.shape[1]
    measured: dict[str, list[float]] = {contender.name: [] for contender in CONTENDERS}
    for noise in noises:
        for contender in CONTENDERS:
            measured[contender.name].append(_measure(contender, noise, steps, seed))
    return Minibatch(
        list(noises),
        float(biased_weights(GRADIENTS, [0.0] * 3)[0]),
        [float(biased_weights(GRADIENTS, [0.0, size * noise**2, 0.0])[0]) for noise in noises],
        measured,
    )


def _measure(contender: Contender, noise: float, steps: int, seed: int) -> float:
    # Losses with these gradients at theta = 0, where it stays: its step is 0.
    losses = [Quadratic(-gradient, np.eye(len(gradient))) for gradient in GRADIENTS]
    path = train(losses, contender, steps=steps, rate=0.0, gradient_noise=[0.0, noise, 0.0], every=1, seed=seed).path
    late = path[steps // 2 :].mean(0)
    return float(late[0] / late.sum() * len(late)) if late.sum() > 0 else 0.0
