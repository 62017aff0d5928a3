"""A world in which every distribution of the paper is normal, so that all of them are known exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from arml.theory.checks import (
    Array,
    check_count,
    check_definite,
    check_matrix,
    check_same_size,
    check_total,
    check_vector,
    check_weights,
    show_weights,
)
from arml.theory.gaussian import Gaussian, Quadratic, invert, normalise


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
        return normalise(precision, shift, f"The surrogate prior with weights {show_weights(alpha)}")

    def likelihood(self, labels: int, observed: ArrayLike) -> Quadratic:
        r"""The main loss of ``labels`` labels whose mean is ``observed``: precision :math:`n V^{-1}`."""
        check_count("labels", labels)
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
        check_same_size("main", main.centre, "true_prior", self.true_prior.mean)
        precision, shift = self._sum(check_weights(alpha, self.num_tasks, total))
        return normalise(
            main.precision + precision, main.precision @ main.centre + shift, "The joint loss of all tasks"
        )

    def draw(self, labels: int, rng: np.random.Generator) -> tuple[Array, Quadratic]:
        """Parameters from the true prior, and the main loss of ``labels`` labels of such a task."""
        check_count("labels", labels)
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


def project(alpha: ArrayLike, total: float) -> Array:
    r"""The closest weights that are not negative and sum to ``total``: :math:`\max(\alpha - \tau, 0)`.

    >>> project([2.5, 0.1], 2.0)
    array([2., 0.])
    """
    check_total(total)
    v = check_vector("alpha", alpha)
    descending = np.sort(v)[::-1]
    thresholds = (np.cumsum(descending) - total) / np.arange(1, len(v) + 1)
    kept = int(np.sum(descending > thresholds))
    return np.asarray(np.maximum(v - thresholds[max(kept, 1) - 1], 0.0))
