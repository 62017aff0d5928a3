"""Every auxiliary task misleads, and the fixed sum of the weights must be spent all the same."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from arml.report.data.summary import Summary, summarise
from arml.theory.failures.contenders import AGREEMENT, EQUAL, FADING, GATED, PAPER, Contender
from arml.theory.failures.training import train
from arml.theory.regression import Regression

CONTENDERS = (EQUAL, PAPER, GATED, FADING, AGREEMENT)


class Misleading(NamedTuple):
    """Expected excess errors against the distance of all auxiliary tasks from the main one."""

    distances: list[float]
    main_alone: list[float]
    """Without auxiliary tasks, exact."""
    best: list[float]
    """With the best weights of any sum, exact: the planted truth."""
    best_with_sum: list[float]
    """With the best weights that sum to K, exact: no method with a fixed sum can be better."""
    measured: dict[str, list[Summary]]
    """What training found, by method."""


def make_world(distance: float) -> Regression:
    """Three tasks at the same ``distance`` from the main one, in different directions; the main task has 10 labels."""
    directions = np.array([[0.0, 0, 0, 0], [1, 0, 0, 0], [0.6, 0.8, 0, 0], [0.6, -0.3, np.sqrt(0.55), 0]])
    return Regression(distance * directions, [1.0] * 4, [10, 200, 200, 200])


def sweep_distances(distances: Sequence[float], draws: int, seed: int) -> Misleading:
    """Exact errors, and those of real runs on ``draws`` sets of examples for each distance."""
    worlds = [make_world(distance) for distance in distances]
    measured: dict[str, list[Summary]] = {contender.name: [] for contender in CONTENDERS}
    for world in worlds:
        for contender in CONTENDERS:
            measured[contender.name].append(_measure(world, contender, draws, seed))
    return Misleading(
        list(distances),
        [world.error([0.0] * 3) for world in worlds],
        [world.error(world.best_weights()) for world in worlds],
        [world.error(world.best_weights(3.0)) for world in worlds],
        measured,
    )


def _measure(world: Regression, contender: Contender, draws: int, seed: int) -> Summary:
    rng = np.random.default_rng(seed)
    return summarise([world.excess(train(world.draw(rng), contender, start=[1.0] * 4).theta) for _ in range(draws)])
