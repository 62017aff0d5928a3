"""The test loss of the main task that weights lead to, exact, against the number of labels."""

import numpy as np
from numpy.typing import ArrayLike

from arml.theory.checks import Array, check_count, check_same_size
from arml.theory.gaussian import Gaussian, Quadratic, invert
from arml.theory.world import World


def excess_loss(world: World, theta: ArrayLike, estimate: ArrayLike) -> float:
    r"""How much worse ``estimate`` predicts new labels than the true ``theta``, in nats per label.

    .. math::
        E_y [-\log p(y | \hat\theta) + \log p(y | \theta)]
        = \tfrac12 (\hat\theta - \theta)^\top V^{-1} (\hat\theta - \theta)
    """
    away = np.asarray(estimate, dtype=float) - np.asarray(theta, dtype=float)
    return float(0.5 * away @ invert(world.noise) @ away)


def loss_after_training(world: World, theta: ArrayLike, main: Quadratic, alpha: ArrayLike) -> float:
    """The excess loss at the lowest point of the joint loss, for one set of labels."""
    return excess_loss(world, theta, world.joint(main, alpha, total=float(np.sum(alpha))).mean)


def expected_loss(world: World, prior: Gaussian, labels: int) -> float:
    r"""The excess loss at the lowest point of main loss and prior, in expectation over p* and over labels.

    With :math:`R = V^{-1}`, n labels, a prior N(b, Q^{-1}) and :math:`A = (n R + Q)^{-1}` the error of the estimate is
    :math:`A Q (b - \theta) + n A R (\bar y - \theta)`, so with :math:`B = (b - \mu)(b - \mu)^\top + C^*`, where p* is
    :math:`N(\mu, C^*)`,

    .. math:: \tfrac12 \operatorname{tr}(R A Q B Q A) + \tfrac n2 \operatorname{tr}(R A R A)

    is the expectation: what a wrong prior costs, and what few labels cost.
    """
    check_same_size("prior", prior.mean, "true_prior", world.true_prior.mean)
    return mean_loss(world, prior, labels, _second_moment(world, prior.mean))


def loss_at(world: World, prior: Gaussian, labels: int, theta: ArrayLike) -> float:
    """The same for one main task with the parameters ``theta``, in expectation over its labels only."""
    away = prior.mean - np.asarray(theta, dtype=float)
    return mean_loss(world, prior, labels, np.outer(away, away))


def mean_loss(world: World, prior: Gaussian, labels: int, distance: Array) -> float:
    """The formula of :func:`expected_loss` with ``distance`` for B."""
    check_count("labels", labels)
    r, q = invert(world.noise), prior.precision
    a = invert(labels * r + q)
    wrong_prior = np.trace(r @ a @ q @ distance @ q @ a)
    few_labels = labels * np.trace(r @ a @ r @ a)
    return float(0.5 * (wrong_prior + few_labels))


def loss_without_prior(world: World, labels: int) -> float:
    """The expected excess loss of the main task alone: d / (2 n)."""
    return world.size / (2 * labels)


def labels_needed(world: World, prior: Gaussian | None, level: float, *, most: int = 1_000_000) -> int | None:
    """The fewest labels with an expected excess loss of at most ``level``; ``None`` if ``most`` are not enough.

    Args:
        world: the world.
        prior: the prior that is trained with; ``None``: none, the main task alone.
        level: in nats per label.
        most: where to stop.
    """
    if not level > 0:
        raise ValueError(f"`level` should be a positive loss: no number of labels reaches 0. Got {level!r}.")

    def loss(labels: int) -> float:
        return loss_without_prior(world, labels) if prior is None else expected_loss(world, prior, labels)

    low, high = 1, 1
    # The loss may rise at first where a wrong prior meets its first labels, but it falls for good in the end.
    while loss(high) > level:
        low, high = high, high * 2
        if high > most:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if loss(middle) <= level else (middle, high)
    return low if loss(low) <= level else high


def _second_moment(world: World, mean: Array) -> Array:
    away = mean - world.true_prior.mean
    return np.outer(away, away) + world.true_prior.covariance
