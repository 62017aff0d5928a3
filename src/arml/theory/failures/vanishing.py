"""Once the joint loss is minimised, ARML's slope forgets the main task: weight flows to small gradients."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from arml.theory.checks import Array
from arml.theory.failures.contenders import AGREEMENT, FADING, GATED, PAPER, SCALE_FREE
from arml.theory.failures.training import train
from arml.theory.gaussian import Quadratic
from arml.theory.regression import Regression

CONTENDERS = (PAPER, SCALE_FREE, GATED, FADING, AGREEMENT)


class Vanishing(NamedTuple):
    """The weight of a helpful task over training, where the other task is nearly flat and says nothing."""

    steps: list[int]
    weights: dict[str, list[float]]
    """Weight of the helpful task, by method; for a fading share, weight times share."""
    errors: dict[str, float]
    """Excess error at the end, by method, mean over draws."""


def slope_at_rest(losses: list[Quadratic], alpha: ArrayLike) -> tuple[Array, Array]:
    r"""ARML's slope where the joint loss is minimal, and that of :math:`2 \|\sum_k \alpha_k g_k\|^2`: they are equal.

    There :math:`g_0 = -\sum_k \alpha_k g_k`, so :math:`-2 \langle g_k, g_0 - \sum_j \alpha_j g_j \rangle =
    4 \langle g_k, \sum_j \alpha_j g_j \rangle`. Nothing is left of the main task: its descent makes the auxiliary
    gradient small, and the tasks with small gradients win, related or not.
    """
    weights = np.concatenate([[1.0], np.asarray(alpha, dtype=float)])
    precision = np.tensordot(weights, np.stack([loss.precision for loss in losses]), 1)
    shift = weights @ np.stack([loss.precision @ loss.centre for loss in losses])
    theta = np.linalg.solve(precision, shift)
    gradients = np.stack([loss.gradient(theta) for loss in losses])
    joint = weights[1:] @ gradients[1:]
    return -2 * gradients[1:] @ (gradients[0] - joint), 4 * gradients[1:] @ joint


def make_losses(rng: np.random.Generator) -> tuple[Regression, list[Quadratic]]:
    """A main task with 10 labels, a task with the same parameters and 300 examples, and a nearly flat one."""
    world = Regression([[1.0, 1.0], [1.0, 1.0]], [2.0, 2.0], [10, 300])
    return world, [*world.draw(rng), Quadratic([3.0, -1.0], 0.01 * np.eye(2))]


def follow_weights(steps: int, draws: int, seed: int) -> Vanishing:
    """Trains far beyond the point where the joint loss is minimal."""
    weights: dict[str, list[float]] = {}
    errors: dict[str, float] = {}
    for contender in CONTENDERS:
        rng, paths, found = np.random.default_rng(seed), [], []
        for _ in range(draws):
            world, losses = make_losses(rng)
            run = train(losses, contender, steps=steps, start=[-3.0, -2.0], every=2)
            paths.append(run.path[:, 0])
            found.append(world.excess(run.theta))
        weights[contender.name] = np.mean(paths, 0)[_shown(steps)].tolist()
        errors[contender.name] = float(np.mean(found))
    return Vanishing((_shown(steps) + 1).tolist(), weights, errors)


def _shown(steps: int) -> Array:
    return np.unique(np.linspace(0, steps - 1, 41).astype(int))
