"""Worlds of finitely many cells, in which every density is constant: Theorem 1 can be checked to the last digit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from arml.theory.checks import Array, check_many_weights, check_same_size
from arml.theory.gaussian import Quadratic
from arml.theory.world import World


@dataclass(frozen=True, eq=False)
class Cells:
    r"""Densities on M cells of given volumes. The true prior is uniform on the cells of its support S.

    The theorem asks for densities that are constant inside S. If S is one cell, they are. Nothing in its proof needs
    more than a measure, so these worlds are as good as any.
    """

    volumes: Array
    """[M]."""
    main: Array
    r"""log of the likelihood of the main labels, [M]; any constant may be added."""
    tasks: Array
    """Log-likelihoods of the auxiliary tasks, [K, M]."""
    support: NDArray[np.bool_]
    """[M] of bool: the cells of S."""

    def __init__(self, volumes: ArrayLike, main: ArrayLike, tasks: ArrayLike, support: ArrayLike) -> None:
        """Checks the shapes.

        Args:
            volumes: how large each cell is.
            main: log-likelihood of the main labels in each cell.
            tasks: the same for each auxiliary task, one row each.
            support: which cells the true prior covers; some, not all.
        """
        v, m, t = (np.array(given, dtype=float) for given in (volumes, main, tasks))
        s = np.array(support, dtype=bool)
        if v.ndim != 1 or m.shape != v.shape or s.shape != v.shape or t.ndim != 2 or t.shape[1:] != v.shape:
            raise ValueError(
                "`volumes`, `main` and `support` should have one entry per cell, and `tasks` one row per task with one "
                f"entry per cell. Got shapes {v.shape}, {m.shape}, {s.shape} and {t.shape}."
            )
        if not (v > 0).all() or s.all() or not s.any():
            raise ValueError("`volumes` should be positive, and `support` should hold some of the cells, not all.")
        if not np.isfinite(m).all() or not np.isfinite(t).all():
            raise ValueError(f"`main` and `tasks` should hold finite numbers. Got {m.tolist()} and {t.tolist()}.")
        for name, value in (("volumes", v), ("main", m), ("tasks", t), ("support", s)):
            object.__setattr__(self, name, value)

    def main_density(self) -> Array:
        """p^m in every cell, [M]."""
        return np.asarray(np.exp(self._normalise(self.main)))

    def prior(self, alphas: ArrayLike) -> Array:
        """p_alpha in every cell, [..., M], for weights [..., K]."""
        return np.asarray(np.exp(self._log_prior(alphas)))

    def kl(self, alphas: ArrayLike) -> Array:
        """D(p* || p_alpha) for weights [..., K]; p* is uniform on S."""
        inside = self.volumes[self.support]
        true = 1 / inside.sum()
        return np.asarray((inside * true * (np.log(true) - self._log_prior(alphas)[..., self.support])).sum(-1))

    def surrogate(self, alphas: ArrayLike) -> Array:
        """f: the expectation of log p^m / p_alpha under p^J, for weights [..., K]."""
        # Far from everything densities are 0 in floating point, but their logarithms are not infinite.
        main, prior = self._normalise(self.main), self._log_prior(alphas)
        log_joint = np.log(self.volumes) + main + prior
        joint = np.exp(log_joint - log_joint.max(-1, keepdims=True))
        return np.asarray((joint * (main - prior)).sum(-1) / joint.sum(-1))

    def overlap(self, alphas: ArrayLike, *, inside: bool) -> Array:
        """Z(S; alpha) or Z(not S; alpha): the integral of p^m p_alpha inside or outside S."""
        where = self.support if inside else ~self.support
        return np.asarray((self.volumes * self.main_density() * self.prior(alphas))[..., where].sum(-1))

    def _log_prior(self, alphas: ArrayLike) -> Array:
        return self._normalise(check_many_weights(alphas, len(self.tasks)) @ self.tasks)

    def _normalise(self, log_likelihood: Array) -> Array:
        """The logarithm of the density."""
        return np.asarray(log_likelihood - logsumexp(log_likelihood, b=self.volumes, axis=-1, keepdims=True))


def cut_into_cells(world: World, main: Quadratic, radius: float, *, cells: int = 4001, reach: float = 12.0) -> Cells:
    """A world with one parameter as cells; S is the interval of ``radius`` around the mean of the true prior.

    The cells cover ``reach`` standard deviations of everything. If S is small, densities are almost constant in it.
    """
    if world.size != 1:
        raise ValueError(f"Only worlds with one parameter can be cut into cells. This one has {world.size}.")
    check_same_size("main", main.centre, "true_prior", world.true_prior.mean)
    if not 0 < radius < np.inf:
        raise ValueError(f"`radius` should be a positive number. Got {radius!r}.")
    losses = [main, *world.tasks]
    middles = [float(loss.centre[0]) for loss in losses] + [float(world.true_prior.mean[0])]
    widest = max(float(loss.precision[0, 0]) ** -0.5 for loss in losses)
    edges = np.linspace(min(middles) - reach * widest, max(middles) + reach * widest, cells + 1)
    middle = float(world.true_prior.mean[0])
    edges = np.unique(np.concatenate([edges, np.linspace(middle - radius, middle + radius, 21)]))
    points = (edges[1:] + edges[:-1]) / 2
    main_values, *task_values = [-loss.loss(points[:, None]) for loss in losses]
    return Cells(np.diff(edges), main_values, np.stack(task_values), np.abs(points - middle) < radius)
