"""A world in which every distribution of the paper is normal, so that all of them are known exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from arml.theory.gaussian import (
    Array,
    Gaussian,
    Quadratic,
    check_definite,
    check_matrix,
    check_same_size,
    check_vector,
    invert,
    normalise,
)


@dataclass(frozen=True, eq=False)
class World:
    r"""A main task whose best parameters are drawn from a true prior, and K auxiliary tasks.

    One label of the main task is an observation :math:`y \sim N(\theta, V)` of its parameters. n labels with mean
    :math:`\bar y` have the likelihood :math:`p^m(\theta) = N(\theta; \bar y, V / n)`. Auxiliary task k has the loss
    :math:`L_k(\theta) = \frac12 (\theta - c_k)^\top P_k (\theta - c_k)`. The weights :math:`\alpha` make the surrogate
    prior :math:`p_\alpha \propto \exp(-\sum_k \alpha_k L_k)`.
    """

    true_prior: Gaussian
    """p*, the distribution of the parameters that main tasks have."""
    tasks: tuple[Quadratic, ...]
    """The losses of the auxiliary tasks."""
    noise: Array
    """V, the covariance of one label."""

    def __init__(self, true_prior: Gaussian, tasks: Sequence[Quadratic], noise: ArrayLike) -> None:
        """Checks that everything is about the same parameters.

        Args:
            true_prior: p*.
            tasks: one loss per auxiliary task; at least one.
            noise: V, the covariance of one label.
        """
        if not tasks:
            raise ValueError("A world needs at least one auxiliary task. Got none.")
        v = check_matrix("noise", noise)
        check_definite("noise", v)
        check_same_size("true_prior", true_prior.mean, "noise", v)
        for number, task in enumerate(tasks):
            check_same_size("true_prior", true_prior.mean, f"tasks[{number}]", task.centre)
        object.__setattr__(self, "true_prior", true_prior)
        object.__setattr__(self, "tasks", tuple(tasks))
        object.__setattr__(self, "noise", v)

    @property
    def num_tasks(self) -> int:
        """K."""
        return len(self.tasks)

    @property
    def size(self) -> int:
        """d, the number of parameters."""
        return self.true_prior.size

    def surrogate_prior(self, alpha: ArrayLike) -> Gaussian:
        r""":math:`p_\alpha`: precision :math:`P = \sum_k \alpha_k P_k`, mean :math:`P^{-1} \sum_k \alpha_k P_k c_k`."""
        precision, shift = self._sum(check_weights(alpha, self.num_tasks))
        return normalise(precision, shift, f"The surrogate prior with weights {_round(alpha)}")

    def likelihood(self, labels: int, observed: ArrayLike) -> Quadratic:
        r"""The main loss of ``labels`` labels whose mean is ``observed``: precision :math:`n V^{-1}`."""
        if labels < 1 or labels != int(labels):
            raise ValueError(f"`labels` should be a whole number of at least 1. Got {labels!r}.")
        centre = check_vector("observed", observed)
        check_same_size("observed", centre, "noise", self.noise)
        return Quadratic(centre, labels * invert(self.noise))

    def joint(self, main: Quadratic, alpha: ArrayLike, *, total: float | None = None) -> Gaussian:
        r""":math:`p^J \propto p^m p_\alpha`, from which training with noise draws. Its mean is where training ends.

        Args:
            main: the main loss, from :meth:`likelihood`.
            alpha: the weights.
            total: what the weights sum to; ``None``: K. ``math.nan`` allows any sum.
        """
        precision, shift = self._sum(check_weights(alpha, self.num_tasks, total))
        return normalise(
            main.precision + precision, main.precision @ main.centre + shift, "The joint loss of all tasks"
        )

    def draw(self, labels: int, rng: np.random.Generator) -> tuple[Array, Quadratic]:
        """Parameters from the true prior, and the main loss of ``labels`` labels of such a task."""
        theta = self.true_prior.sample(1, rng)[0]
        observed = Gaussian(theta, self.noise / labels).sample(1, rng)[0]
        return theta, self.likelihood(labels, observed)

    def _sum(self, alpha: Array) -> tuple[Array, Array]:
        precisions, shifts = self._stacked
        return np.tensordot(alpha, precisions, 1), alpha @ shifts

    @cached_property
    def _stacked(self) -> tuple[Array, Array]:
        """The precisions [K, d, d] of the tasks, and P_k c_k [K, d]."""
        precisions = np.stack([task.precision for task in self.tasks])
        return precisions, np.stack([task.precision @ task.centre for task in self.tasks])


def check_weights(alpha: ArrayLike, num_tasks: int, total: float | None = None) -> Array:
    """``alpha`` as an array [K]; raises unless no weight is negative and all sum to ``total``, K by default."""
    weights = np.array(alpha, dtype=float)
    if weights.shape != (num_tasks,):
        raise ValueError(f"`alpha` should have one weight per auxiliary task, {num_tasks}. Got shape {weights.shape}.")
    total = num_tasks if total is None else total
    if not np.isfinite(weights).all() or weights.min() < 0 or abs(weights.sum() - total) > 1e-6 * max(1.0, total):
        raise ValueError(
            f"`alpha` should have no negative weight and sum to {total:g}. Got {_round(weights)}, "
            f"with the sum {weights.sum():.6g}. Project it first: arml.theory.project(alpha, total)."
        )
    return weights


def project(alpha: ArrayLike, total: float) -> Array:
    r"""The closest weights that are not negative and sum to ``total``: :math:`\max(\alpha - \tau, 0)`.

    >>> project([2.5, 0.1], 2.0)
    array([2., 0.])
    """
    v = check_vector("alpha", alpha)
    descending = np.sort(v)[::-1]
    thresholds = (np.cumsum(descending) - total) / np.arange(1, len(v) + 1)
    kept = int(np.sum(descending > thresholds))
    return np.asarray(np.maximum(v - thresholds[max(kept, 1) - 1], 0.0))


def _round(alpha: ArrayLike) -> list[float]:
    return [float(f"{weight:.6g}") for weight in np.ravel(np.asarray(alpha, dtype=float))]
