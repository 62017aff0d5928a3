"""Linear regression with auxiliary tasks: the weights with the least expected error, known exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from arml.theory.checks import Array, check_definite, check_matrix, check_same_size, check_total, check_weights
from arml.theory.gaussian import Quadratic


@dataclass(frozen=True, eq=False)
class Regression:
    r"""Tasks :math:`y = x^\top \theta_k + \sigma_k \varepsilon` with n_k examples each; index 0 is the main task.

    All tasks have inputs with the same second moments, :math:`X_k^\top X_k = n_k H`. The mean squared error of task k
    is minimised by an estimate :math:`\hat\theta_k \sim N(\theta_k, \sigma_k^2 H^{-1} / n_k)`, and the sum of mean
    squared errors, the auxiliary ones weighted by :math:`\alpha_k`, by

    .. math:: \hat\theta = \sum_k u_k \hat\theta_k, \qquad u = (1, \alpha) / (1 + \sum_k \alpha_k)

    So weights act through the shares u, and the expected excess error of the main task is a quadratic form in them:

    .. math:: E\, (\hat\theta - \theta_0)^\top H (\hat\theta - \theta_0) = u^\top M u, \qquad
        M_{jk} = (\theta_j - \theta_0)^\top H (\theta_k - \theta_0) + [j = k]\, d\, \sigma_k^2 / n_k

    a bias and a variance. The best shares are those of a quadratic programme. Liu, Jung, Li, Feng and Zhao,
    *Expectation Error Bounds for Transfer Learning in Linear Regression and Linear Neural Networks*, arXiv:2603.28739,
    2026, give exact errors and optimal weights of this kind for random designs; this is the case of equal designs.
    """

    theta: Array
    """[1 + K, d]."""
    sigma: Array
    """[1 + K], the standard deviations of the noise."""
    examples: Array
    """n [1 + K]."""
    moments: Array
    """H [d, d]."""

    def __init__(
        self, theta: ArrayLike, sigma: Sequence[float], examples: Sequence[int], moments: ArrayLike | None = None
    ) -> None:
        """Checks that there is one row, noise and size per task.

        Args:
            theta: the true parameters of each task, the main one first.
            sigma: standard deviation of each task's noise.
            examples: number of each task's examples.
            moments: H; ``None``: the unit matrix.
        """
        t, s, n = (np.array(given, dtype=float) for given in (theta, sigma, examples))
        if t.ndim != 2 or len(t) < 2 or s.shape != (len(t),) or n.shape != (len(t),):
            raise ValueError(
                "`theta` should have one row per task, the main one first, and `sigma` and `examples` one number per "
                f"task. Got shapes {t.shape}, {s.shape} and {n.shape}."
            )
        if not np.isfinite(t).all():
            raise ValueError(f"`theta` should hold finite numbers. Got {t.tolist()}.")
        if not (s >= 0).all() or not (n >= 1).all():
            raise ValueError(f"`sigma` should be at least 0 and `examples` at least 1. Got {s.tolist()}, {n.tolist()}.")
        h = check_matrix("moments", np.eye(t.shape[1]) if moments is None else moments)
        check_same_size("rows of theta", t[0], "moments", h)
        check_definite("moments", h)
        for name, value in (("theta", t), ("sigma", s), ("examples", n), ("moments", h)):
            object.__setattr__(self, name, value)

    @property
    def num_tasks(self) -> int:
        """K."""
        return len(self.theta) - 1

    def draw(self, rng: np.random.Generator) -> tuple[Quadratic, ...]:
        r"""Half the mean squared error of every task on examples it may have; its lowest point is :math:`\hat\theta_k`.

        The noise of each estimate has a random direction and its typical length. Its mean and covariance are those of
        normal noise, and with them the expected error of any weights; the scatter between draws is less.
        """
        root = np.linalg.cholesky(np.linalg.inv(self.moments))
        noise = rng.standard_normal(self.theta.shape)
        noise *= np.sqrt(self.theta.shape[1]) / np.linalg.norm(noise, axis=1, keepdims=True)
        noise = noise @ root.T
        found = self.theta + noise * (self.sigma / np.sqrt(self.examples))[:, None]
        return tuple(Quadratic(centre, self.moments) for centre in found)

    def excess(self, theta: ArrayLike) -> float:
        """The excess error of the main task at ``theta``."""
        away = np.asarray(theta, dtype=float) - self.theta[0]
        return float(away @ self.moments @ away)

    def form(self) -> Array:
        """M [1 + K, 1 + K], bias and variance."""
        away = self.theta - self.theta[0]
        return np.asarray(away @ self.moments @ away.T + np.diag(self.theta.shape[1] * self.sigma**2 / self.examples))

    def error(self, alpha: ArrayLike) -> float:
        """The expected excess error of the main task with these weights."""
        u = shares(check_weights(alpha, self.num_tasks, float(np.sum(alpha))))
        return float(u @ self.form() @ u)

    def best_weights(self, total: float | None = None) -> Array:
        """The weights with the least error, of any sum or with the sum ``total``, as ARML must have it with K."""
        if total is not None:
            check_total(total)
        form, size = self.form(), self.num_tasks
        fixed = [] if total is None else [{"type": "eq", "fun": lambda u: u[0] - 1 / (1 + total)}]
        whole = {"type": "eq", "fun": lambda u: u.sum() - 1}
        found = minimize(
            lambda u: u @ form @ u / form.trace(),
            np.full(1 + size, 1 / (1 + size)),
            jac=lambda u: 2 * form @ u / form.trace(),
            bounds=[(1e-9 if place == 0 else 0, 1) for place in range(1 + size)],
            constraints=[whole, *fixed],
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        return np.asarray(np.maximum(found.x[1:], 0) / found.x[0])


def shares(alpha: Array) -> Array:
    """u = (1, alpha) / (1 + sum of alpha)."""
    weights = np.concatenate([[1.0], alpha])
    return np.asarray(weights / weights.sum())
