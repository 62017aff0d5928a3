"""Steps of the paper's argument that do not hold as printed, each with numbers that show it."""

from typing import NamedTuple

import numpy as np

from arml.theory.answers import minimise_over_simplex
from arml.theory.cells import Cells
from arml.theory.checks import Array
from arml.theory.gaussian import Gaussian, Quadratic
from arml.theory.objectives import score_objective
from arml.theory.theorem import find_constants
from arml.theory.world import World


class DaggerExample(NamedTuple):
    """A world of three cells for the printed claim KL(alpha-dagger) <= KL(alpha-hat) + gamma_2 / C_2."""

    kl_hat: float
    kl_dagger: float
    allowance: float
    """gamma_2 / C_2."""

    @property
    def excess(self) -> float:
        """By how much the printed inequality is wrong."""
        return self.kl_dagger - self.kl_hat - self.allowance


def three_cells() -> DaggerExample:
    """Log-likelihoods 1, 0, 2 of the labels and 3, -2, -3 and -4, -4, 4 of two tasks; S is the first cell.

    alpha-dagger is, as in the paper's appendix, the minimum of f(alpha) - log Z(alpha).
    """
    world = Cells([1, 1, 1], [1, 0, 2], [[3, -2, -3], [-4, -4, 4]], [True, False, False])
    first = np.linspace(0, 2, 201)
    alphas = np.stack([first, 2 - first], 1)
    f, kl, constants = world.surrogate(alphas), world.kl(alphas), find_constants(world, alphas)
    overlap = world.overlap(alphas, inside=True) + world.overlap(alphas, inside=False)
    return DaggerExample(
        float(kl[f.argmin()]), float(kl[(f - np.log(overlap)).argmin()]), constants.gamma2 / constants.c2
    )


class EquivalenceExample(NamedTuple):
    """Two objectives that the appendix calls equivalent, with their best weights of the first of two tasks."""

    by_fisher: float
    """With the least Fisher divergence of p^J and p_alpha squared: the final objective."""
    by_kl: float
    """With the least KL divergence of the same two distributions."""


def unequal_directions() -> EquivalenceExample:
    r"""Two tasks with one covariance :math:`\Sigma` = diag(1, 1/16), and labels elsewhere.

    Where :math:`\Sigma` is the same for all tasks, both objectives measure the distance of the means, Fisher by
    :math:`\Sigma^{-2}` and KL by :math:`\Sigma^{-1}`. They have one minimum only if no direction is special.
    """
    spread = np.diag([1.0, 1 / 16])
    tasks = [Quadratic.of(Gaussian(mean, spread)) for mean in ([0.0, 0.0], [2.0, 0.5])]
    world = World(Gaussian([0.0, 0.0], np.eye(2)), tasks, np.eye(2))
    main = world.likelihood(4, [1.6, 0.0])

    def kl(alpha: Array) -> float:
        return world.joint(main, alpha).kl(world.surrogate_prior(alpha).power(2))

    fisher = minimise_over_simplex(lambda alpha: score_objective(world, main, alpha), 2)
    return EquivalenceExample(float(fisher[0]), float(minimise_over_simplex(kl, 2)[0]))


def furthest_task(main_precision: float, prior_precision: float, distance: float) -> float:
    r"""f in one dimension, up to a constant, for tasks of equal width: its sign says which task the surrogate prefers.

    With precision p of the labels and q of :math:`p_\alpha`, and the distance :math:`\delta` of their means,

    .. math:: f = \text{const} + \tfrac12 \delta^2\, p\, q\, (p - q) / (p + q)^2

    For p < q, that is with few labels, f *falls* with the distance: the task furthest from the labels is preferred.
    """
    p, q = main_precision, prior_precision
    return 0.5 * distance**2 * p * q * (p - q) / (p + q) ** 2
