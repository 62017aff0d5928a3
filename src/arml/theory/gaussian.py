"""Normal distributions and quadratic losses, with everything about them in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from arml.theory.checks import (
    Array,
    check_definite,
    check_matrix,
    check_points,
    check_same_size,
    check_vector,
)

SMALLEST = 1e-10
"""Smallest eigenvalue of a precision, relative to the largest one, that counts as more than 0."""


class ImproperPriorError(ValueError):
    """Weighted losses that are flat in some direction: no probability distribution belongs to them."""


@dataclass(frozen=True, eq=False)
class Gaussian:
    r"""N(m, C), with mean m [d] and covariance C [d, d]; the precision is :math:`P = C^{-1}`.

    >>> round(Gaussian([0.0], [[4.0]]).entropy(), 4)
    2.1121
    """

    mean: Array
    covariance: Array

    def __init__(self, mean: ArrayLike, covariance: ArrayLike) -> None:
        """Converts to arrays of float64, and checks them.

        Args:
            mean: m, d numbers.
            covariance: C, symmetric and positive definite.
        """
        m, c = check_vector("mean", mean), check_matrix("covariance", covariance)
        check_same_size("mean", m, "covariance", c)
        check_definite("covariance", c)
        object.__setattr__(self, "mean", m)
        object.__setattr__(self, "covariance", c)

    @property
    def size(self) -> int:
        """d."""
        return len(self.mean)

    @cached_property
    def precision(self) -> Array:
        """P, the inverse of the covariance."""
        return invert(self.covariance)

    @classmethod
    def from_precision(cls, precision: Array, shift: Array) -> Gaussian:
        r"""N(m, C) with :math:`C = P^{-1}` and m = C ``shift``, for a P that is known to be positive definite."""
        made = object.__new__(cls)
        covariance = invert(precision)
        vars(made).update(mean=covariance @ shift, covariance=covariance, precision=precision)
        return made

    def log_density(self, theta: ArrayLike) -> Array:
        r""":math:`-\frac12 (\theta - m)^\top P (\theta - m) - \frac12 \log\det 2\pi C` for theta [..., d]."""
        away = check_points(theta, self.size) - self.mean
        squared = np.einsum("...i,ij,...j->...", away, self.precision, away)
        return np.asarray(-0.5 * squared - 0.5 * log_det(2 * np.pi * self.covariance))

    def score(self, theta: ArrayLike) -> Array:
        r""":math:`\nabla \log p(\theta) = -P (\theta - m)` for theta [..., d]."""
        return np.asarray(-(check_points(theta, self.size) - self.mean) @ self.precision)

    def entropy(self) -> float:
        r""":math:`H = \frac12 \log\det 2\pi e C`. It may be negative: only differences have a meaning."""
        return 0.5 * log_det(2 * np.pi * np.e * self.covariance)

    def mean_log_density(self, other: Gaussian) -> float:
        r"""The expectation of :math:`\log q(\theta)` under this p, for q = ``other`` with mean b and precision Q.

        .. math:: -\tfrac12 [\operatorname{tr}(Q C) + (m - b)^\top Q (m - b) + \log\det 2\pi Q^{-1}]
        """
        q, away = other.precision, self.mean - other.mean
        spread = float(np.trace(q @ self.covariance) + away @ q @ away)
        return -0.5 * (spread + log_det(2 * np.pi * other.covariance))

    def kl(self, other: Gaussian) -> float:
        r"""The Kullback-Leibler divergence :math:`D(p \| q) = -H(p) - E_p \log q` for q = ``other``."""
        check_same_size("mean", self.mean, "mean of the other distribution", other.mean)
        return -self.entropy() - self.mean_log_density(other)

    def fisher(self, other: Gaussian) -> float:
        r"""The Fisher divergence of the paper, with q = ``other``, its mean b and precision Q.

        .. math::
            F(p \| q) = E_p \| \nabla \log p - \nabla \log q \|^2
            = \operatorname{tr}[(P - Q) C (P - Q)] + \| Q (m - b) \|^2
        """
        check_same_size("mean", self.mean, "mean of the other distribution", other.mean)
        q = other.precision
        difference = self.precision - q
        return float(np.trace(difference @ self.covariance @ difference) + np.sum((q @ (self.mean - other.mean)) ** 2))

    def power(self, exponent: float) -> Gaussian:
        """The distribution in proportion to p to the ``exponent``: N(m, C / exponent)."""
        return Gaussian(self.mean, self.covariance / exponent)

    def sample(self, number: int, rng: np.random.Generator) -> Array:
        """Independent draws [number, d]."""
        factor = np.linalg.cholesky(self.covariance)
        return np.asarray(self.mean + rng.standard_normal((number, self.size)) @ factor.T)


@dataclass(frozen=True, eq=False)
class Quadratic:
    r"""A loss :math:`L(\theta) = \frac12 (\theta - c)^\top P (\theta - c)`: a negative log-likelihood up to a constant.

    It may be flat in some directions: P need not have full rank.
    """

    centre: Array
    precision: Array

    def __init__(self, centre: ArrayLike, precision: ArrayLike) -> None:
        """Converts to arrays of float64, and checks them.

        Args:
            centre: c, the parameters that fit the task best.
            precision: P, symmetric, without negative eigenvalues.
        """
        c, p = check_vector("centre", centre), check_matrix("precision", precision)
        check_same_size("centre", c, "precision", p)
        lowest, highest = np.linalg.eigvalsh(p)[[0, -1]]
        if lowest < -SMALLEST * max(highest, 1.0):
            raise ValueError(
                f"`precision` should have no negative eigenvalue: a loss must have a lowest point. Its smallest is "
                f"{lowest:.4g}. Got {p.tolist()}."
            )
        object.__setattr__(self, "centre", c)
        object.__setattr__(self, "precision", p)

    @classmethod
    def of(cls, likelihood: Gaussian) -> Quadratic:
        """The loss whose likelihood is in proportion to a normal density."""
        return cls(likelihood.mean, likelihood.precision)

    def loss(self, theta: ArrayLike) -> Array:
        """L at theta [..., d]."""
        away = check_points(theta, len(self.centre)) - self.centre
        return np.asarray(0.5 * np.einsum("...i,ij,...j->...", away, self.precision, away))

    def gradient(self, theta: ArrayLike) -> Array:
        r""":math:`\nabla L = P (\theta - c)` for theta [..., d]."""
        return np.asarray((check_points(theta, len(self.centre)) - self.centre) @ self.precision)

    def times(self, factor: float) -> Quadratic:
        """The same loss in other units."""
        return Quadratic(self.centre, factor * self.precision)


def normalise(precision: Array, shift: Array, what: str) -> Gaussian:
    r"""The distribution in proportion to :math:`\exp(-\frac12 \theta^\top P \theta + h^\top \theta)`, h the ``shift``.

    Raises an error, which names ``what``, if P is singular: then there is none.
    """
    values = np.linalg.eigvalsh(precision)
    if values[0] <= SMALLEST * max(values[-1], 1e-300):
        raise ImproperPriorError(
            f"{what} is flat in some direction, so it is no probability distribution: the eigenvalues of its precision "
            f"are {[float(f'{value:.4g}') for value in values]}. Give weight to tasks that see all directions together."
        )
    return Gaussian.from_precision(precision, shift)


def invert(matrix: Array) -> Array:
    """The inverse of a symmetric matrix, symmetric to the last bit."""
    inverse = np.linalg.inv(matrix)
    return np.asarray((inverse + inverse.T) / 2)


def log_det(matrix: Array) -> float:
    """The logarithm of the determinant of a positive definite matrix."""
    return float(np.linalg.slogdet(matrix)[1])
