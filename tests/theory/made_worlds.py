"""Small worlds for tests."""

import numpy as np

from arml.theory import Gaussian, Quadratic, World


def line_world() -> World:
    """One parameter: a close task, and a misleading one of another width."""
    tasks = [Quadratic.of(Gaussian([0.2], [[1.0]])), Quadratic.of(Gaussian([3.0], [[0.5]]))]
    return World(Gaussian([0.0], [[0.5]]), tasks, [[4.0]])


def plane_world() -> World:
    """Two parameters and three tasks, the last of which sees one direction only."""
    tasks = [
        Quadratic.of(Gaussian([0.3, 0.1], [[1.0, 0.2], [0.2, 0.5]])),
        Quadratic.of(Gaussian([-0.6, 0.5], [[1.0, 0.5], [0.5, 1.5]])),
        Quadratic([2.0, 0.0], [[1.0, 0.0], [0.0, 0.0]]),
    ]
    return World(Gaussian([0.1, -0.2], [[0.3, 0.1], [0.1, 0.2]]), tasks, [[4.0, 1.0], [1.0, 2.0]])


def mean_within(values: np.ndarray, expected: float) -> bool:
    """Whether ``expected`` lies within four standard errors of the mean of ``values``."""
    return abs(values.mean() - expected) <= 4 * values.std(ddof=1) / np.sqrt(len(values))
