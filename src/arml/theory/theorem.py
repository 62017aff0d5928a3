"""Theorem 1 of the paper in numbers: its constants, its assumptions, its bound, and what really happens."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from arml.theory.cells import Cells
from arml.theory.checks import Array

FLAT = 0.01
"""Largest change of a log-density inside S that counts as constant."""


class Constants(NamedTuple):
    r"""What the bound is made from, with :math:`s = \int_S p^m` and :math:`|S|` the volume of S."""

    c1: float
    r""":math:`C_1 = \log s`, the log-ratio of p^m and p* in S. It is never positive."""
    c2: float
    r""":math:`C_2 = s / |S|`, the density p^m in S."""
    c3: float
    r""":math:`C_3 = \int_{\bar S} (p^m)^2`."""
    c4: float
    r""":math:`C_4 = \max_\alpha \int_{\bar S} p_\alpha^2`."""
    gamma1: float
    r""":math:`\min_\alpha \int_{\bar S} p^m p_\alpha`."""
    gamma2: float
    r""":math:`\gamma_2 = \max_\alpha \int_{\bar S} p^m p_\alpha`, the gamma of the informal version."""

    @property
    def c5(self) -> float:
        """C_5 = C_4 C_2 exp(C_1)."""
        return self.c4 * self.c2 * float(np.exp(self.c1))

    @property
    def c6(self) -> float:
        """C_6 = sqrt(C_3 C_4 exp(-C_1))."""
        return float(np.sqrt(self.c3 * self.c4 * np.exp(-self.c1)))

    def bound(self) -> float:
        r"""The bound on the gap: :math:`\frac{2 \gamma_2^2}{C_5} \log \frac{C_6}{\gamma_2}`."""
        return 2 * self.gamma2**2 / self.c5 * float(np.log(self.c6 / self.gamma2))

    def least_bound(self) -> float:
        r"""What the bound cannot fall below wherever the theorem applies: :math:`\frac{2 \gamma_2}{C_2} (1 - C_1 / 2)`.

        The proof shows :math:`\gamma_2 \ge C_5 / C_2`, so that :math:`\gamma_2^2 / C_5 \ge \gamma_2 / C_2`; and the
        condition on gamma gives :math:`C_6 / \gamma_2 \ge e^{1 - C_1 / 2}`. The bound is of first order in gamma.
        """
        return 2 * self.gamma2 / self.c2 * (1 - self.c1 / 2)


class TheoremCheck(NamedTuple):
    """The theorem in one world."""

    constants: Constants
    star: Array
    """The weights with the least KL among those tried."""
    hat: Array
    """The weights with the least surrogate objective among those tried."""
    kl_star: float
    kl_hat: float
    spread: float
    """The largest change of any log-density inside S, over all weights."""
    upper: float
    """f_u at alpha*."""

    @property
    def gap(self) -> float:
        """KL at alpha-hat minus the least KL: what the bound is about."""
        return self.kl_hat - self.kl_star

    @property
    def flat(self) -> bool:
        """Assumption 1: densities are constant inside S."""
        return self.spread <= FLAT

    @property
    def related(self) -> bool:
        """Assumption 2: f_u(alpha*) <= -log(C_4 / gamma_1), some task is related enough to the main one."""
        return bool(self.upper <= -np.log(self.constants.c4 / self.constants.gamma1))

    @property
    def small(self) -> bool:
        """The condition on gamma: gamma_2 <= C_3 / e and gamma_2 <= C_4 / e."""
        return bool(self.constants.gamma2 <= min(self.constants.c3, self.constants.c4) / np.e)

    @property
    def applies(self) -> bool:
        """Whether the theorem says anything here."""
        return self.flat and self.related and self.small

    @property
    def holds(self) -> bool:
        """Whether its inequality is true here, whatever its assumptions."""
        return self.gap <= self.constants.bound() + 1e-12


def check_theorem(cells: Cells, alphas: ArrayLike) -> TheoremCheck:
    """Computes everything in the theorem; "all weights" are ``alphas`` [A, K]. Its proof holds for any set of them."""
    weights = np.asarray(alphas, dtype=float)
    if weights.ndim != 2 or not len(weights):
        raise ValueError(f"`alphas` should be a list of weights, one row each. Got shape {weights.shape}.")
    kls, values = cells.kl(weights), cells.surrogate(weights)
    star, hat = int(kls.argmin()), int(values.argmin())
    constants = find_constants(cells, weights)
    outside = float(cells.overlap(weights[star], inside=False))
    return TheoremCheck(
        constants,
        weights[star],
        weights[hat],
        float(kls[star]),
        float(kls[hat]),
        _spread(cells, weights),
        float(upper_bound(constants, np.exp(-kls[star]), outside)),
    )


def find_constants(cells: Cells, alphas: Array) -> Constants:
    """The constants, for weights [A, K]."""
    inside, outside = cells.support, ~cells.support
    main, priors = cells.main_density(), cells.prior(alphas)
    mass = float((cells.volumes * main)[inside].sum())
    overlaps = cells.overlap(alphas, inside=False)
    return Constants(
        float(np.log(mass)),
        mass / float(cells.volumes[inside].sum()),
        float((cells.volumes * main**2)[outside].sum()),
        float((cells.volumes * priors**2)[:, outside].sum(-1).max()),
        float(overlaps.min()),
        float(overlaps.max()),
    )


def upper_bound(constants: Constants, closeness: ArrayLike, outside: ArrayLike) -> Array:
    r"""f_u as a function of x = exp(-KL) and z = Z(not S; alpha).

    .. math:: f_u = \frac{C_2 x}{C_2 x + z} (C_1 - \log x) + \frac{z}{C_2 x + z} \log \frac{C_3}{z}
    """
    return _bound(constants, closeness, outside, np.log(constants.c3 / np.asarray(outside, dtype=float)))


def lower_bound(constants: Constants, closeness: ArrayLike, outside: ArrayLike) -> Array:
    r"""f_l, the same with :math:`-\log (C_4 / z)` in place of :math:`\log (C_3 / z)`."""
    return _bound(constants, closeness, outside, -np.log(constants.c4 / np.asarray(outside, dtype=float)))


def _bound(constants: Constants, closeness: ArrayLike, outside: ArrayLike, rest: Array) -> Array:
    x, z = np.asarray(closeness, dtype=float), np.asarray(outside, dtype=float)
    inside = constants.c2 * x / (constants.c2 * x + z)
    return np.asarray(inside * (constants.c1 - np.log(x)) + (1 - inside) * rest)


def _spread(cells: Cells, alphas: Array) -> float:
    logs = np.log(np.concatenate([cells.main_density()[None], cells.prior(alphas)])[:, cells.support])
    return float((logs.max(-1) - logs.min(-1)).max())


def last_step_as_printed(closeness: float, loss: float) -> tuple[float, float]:
    r"""Both sides of the last inequality for alpha-dagger, :math:`-\log(a - b) \le -\log a + b`, as printed.

    a is :math:`\exp(-KL_{\hat\alpha})` and b is :math:`(\gamma_2 - \gamma_1) / C_2`. It is false for every b > 0, since
    :math:`-\log(1 - b / a) > b / a \ge b`. What follows instead is :func:`dagger_bound`.

    >>> last_step_as_printed(0.5, 0.25)
    (1.386..., 0.943...)
    """
    return float(-np.log(closeness - loss)), float(-np.log(closeness) + loss)


def dagger_bound(constants: Constants, kl_hat: float) -> float:
    r"""What does follow for alpha-dagger, with :math:`\hat k = KL_{\hat\alpha}`.

    .. math:: KL_{\dagger} \le \hat k - \log(1 - e^{\hat k} (\gamma_2 - \gamma_1) / C_2)

    Infinite where the argument of the logarithm is not positive.
    """
    left = 1 - np.exp(kl_hat) * (constants.gamma2 - constants.gamma1) / constants.c2
    return float(kl_hat - np.log(left)) if left > 0 else float("inf")
