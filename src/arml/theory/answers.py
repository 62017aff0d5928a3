"""The weights that each objective prefers."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from arml.theory.checks import Array
from arml.theory.gaussian import ImproperPriorError, Quadratic
from arml.theory.objectives import kl_to_truth, mean_products, score_objective, surrogate_objective
from arml.theory.world import World, project


class Answers(NamedTuple):
    """Weights [K] by four rules, in one world, for one set of labels."""

    star: Array
    """alpha*: closest to the true prior, which nobody knows."""
    hat: Array
    """alpha-hat: least surrogate objective."""
    dagger: Array
    """alpha-dagger: least score objective."""
    resting: Array
    """Where the mean of ARML's own step is 0, or points out of the simplex."""


def find_answers(world: World, main: Quadratic) -> Answers:
    """All four answers."""
    return Answers(
        best_weights(world),
        minimise_over_simplex(lambda alpha: surrogate_objective(world, main, alpha), world.num_tasks),
        minimise_over_simplex(lambda alpha: score_objective(world, main, alpha), world.num_tasks),
        resting_weights(world, main),
    )


def best_weights(world: World) -> Array:
    """alpha*, the weights whose surrogate prior is closest to the true one."""
    return minimise_over_simplex(lambda alpha: kl_to_truth(world, alpha), world.num_tasks)


def minimise_over_simplex(function: Callable[[Array], float], size: int, total: float | None = None) -> Array:
    """Weights [size] of least ``function`` among those that are not negative and sum to ``total``, ``size`` by default.

    Searches from the centre and from near the best corner, and also tries the corners themselves: the function may have
    several lowest points. Weights without a proper prior are no candidates.
    """
    total = float(size) if total is None else total
    corners = total * np.eye(size)
    centre = np.full(size, total / size)

    def value(alpha: Array) -> float:
        try:
            return function(project(alpha, total))
        except ImproperPriorError:
            return np.inf

    candidates = [centre, *corners]
    if size > 1:
        constraint = {"type": "eq", "fun": lambda alpha: alpha.sum() - total}
        for start in [centre, 0.8 * min(corners, key=value) + 0.2 * centre]:
            found = minimize(
                value, start, method="SLSQP", bounds=[(0, total)] * size, constraints=[constraint], tol=1e-10
            )
            candidates.append(project(found.x, total))
    return min(candidates, key=value)


def resting_weights(world: World, main: Quadratic, *, most_steps: int = 2_000) -> Array:
    r"""Where ARML's mean step stops: :math:`\alpha = \Pi(\alpha - \beta\, s(\alpha))`, found by taking such steps.

    Starts from equal weights, as ARML does, with :math:`\beta` the inverse of the largest curvature at the time.
    """
    alpha, one = np.ones(world.num_tasks), np.ones(1)
    for _ in range(most_steps):
        products = mean_products(world, main, world.joint(main, alpha))
        slope = -2 * (products @ np.concatenate([one, -alpha]))[1:]
        step = 0.5 / np.linalg.eigvalsh(products[1:, 1:])[-1]
        moved = project(alpha - step * slope, world.num_tasks)
        if np.abs(moved - alpha).max() < 1e-6:
            break
        alpha = moved
    return alpha
