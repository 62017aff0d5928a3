"""The chain of objectives in the paper, each exact: what should be minimised, what stands in for it, what ARML does."""

import numpy as np
from numpy.typing import ArrayLike

from arml.theory.checks import Array, check_weights
from arml.theory.gaussian import Gaussian, Quadratic, normalise
from arml.theory.world import World


def kl_to_truth(world: World, alpha: ArrayLike) -> float:
    r""":math:`D(p^* \| p_\alpha)`, which the weights should minimise: the information that a wrong prior costs.

    It is convex in the weights: :math:`\sum_k \alpha_k E_{p^*} L_k + \log Z(\alpha)` up to a constant.
    """
    return world.true_prior.kl(world.surrogate_prior(alpha))


def surrogate_objective(world: World, main: Quadratic, alpha: ArrayLike) -> float:
    r"""The first replacement: :math:`f(\alpha) = E_{p^J} \log (p^m / p_\alpha)`, with the labels for the true prior.

    It is no divergence. Where :math:`p_\alpha` is much narrower than :math:`p^m`, :math:`p^J \approx p_\alpha` and
    :math:`f \approx -D(p_\alpha \| p^m)`: then the least f belongs to the prior *furthest* from the labels.
    """
    joint = world.joint(main, alpha)
    return joint.mean_log_density(main_density(main)) - joint.mean_log_density(world.surrogate_prior(alpha))


def score_objective(world: World, main: Quadratic, alpha: ArrayLike) -> float:
    r"""The second replacement: :math:`E_{p^J} \|\nabla \log p^m - \nabla \log p_\alpha\|^2`. No partition function.

    With :math:`D = P_\alpha - P_m`, the mean :math:`m_J` and covariance :math:`C_J` of :math:`p^J`,

    .. math:: \operatorname{tr}(D C_J D) + \| P_\alpha (m_J - m_\alpha) - P_m (m_J - \bar y) \|^2

    It equals the Fisher divergence :math:`F(p^J \| p_\alpha^2 / Z')`.
    """
    joint, prior = world.joint(main, alpha), world.surrogate_prior(alpha)
    difference = prior.precision - main.precision
    at_mean = prior.precision @ (joint.mean - prior.mean) - main.gradient(joint.mean)
    return float(np.trace(difference @ joint.covariance @ difference) + at_mean @ at_mean)


def mean_products(world: World, main: Quadratic, where: Gaussian) -> Array:
    r"""G [1 + K, 1 + K]: the expectation of :math:`\langle g_i, g_j \rangle` for theta drawn from ``where``; 0 is main.

    .. math:: G_{ij} = \operatorname{tr}(P_i P_j C) + \langle P_i (m - c_i), P_j (m - c_j) \rangle
    """
    losses = [main, *world.tasks]
    precisions = np.stack([loss.precision for loss in losses])
    slopes = np.stack([loss.gradient(where.mean) for loss in losses])
    spread = np.einsum("iab,jbc,ca->ij", precisions, precisions, where.covariance)
    return np.asarray(spread + slopes @ slopes.T)


def arml_slope(world: World, main: Quadratic, alpha: ArrayLike) -> Array:
    r"""The mean slope [K] of ARML's own step: :math:`-2 (G c)_k`, c = (1, -alpha), with theta from :math:`p^J`.

    The step differentiates :math:`\|g_0 - \sum_k \alpha_k g_k\|^2` and leaves out that :math:`p^J` depends on alpha, so
    this is not the gradient of :func:`score_objective`.
    """
    weights = check_weights(alpha, world.num_tasks)
    products = mean_products(world, main, world.joint(main, weights))
    return np.asarray(-2 * (products @ np.concatenate([[1.0], -weights]))[1:])


def main_density(main: Quadratic) -> Gaussian:
    """The likelihood of the labels, normalised to a density of theta."""
    return normalise(main.precision, main.precision @ main.centre, "The likelihood of the main task")
