"""Losses in unequal units: a factor on a loss is a factor on its gradient."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from arml.report.data.summary import Summary, summarise
from arml.theory.failures.contenders import AGREEMENT, EQUAL, IN_UNITS, PAPER, SCALE_FREE, Contender
from arml.theory.failures.training import train
from arml.theory.regression import Regression

CONTENDERS = (EQUAL, PAPER, SCALE_FREE, IN_UNITS, AGREEMENT)


class Units(NamedTuple):
    """Excess errors against a factor on losses."""

    factors: list[float]
    one_loss: dict[str, list[Summary]]
    """The factor is on the helpful task's loss."""
    all_losses: dict[str, list[Summary]]
    """The factor is on every loss."""


def make_world() -> Regression:
    """A task with nearly the same parameters, and one with others."""
    return Regression([[1.0, 1.0], [1.1, 1.0], [-0.5, 2.0]], [1.5] * 3, [8, 200, 200])


def sweep_factors(factors: Sequence[float], draws: int, seed: int) -> Units:
    """Real runs with the helpful loss, or all losses, multiplied by each factor."""
    found = Units(list(factors), {one.name: [] for one in CONTENDERS}, {one.name: [] for one in CONTENDERS})
    for factor in factors:
        for contender in CONTENDERS:
            found.one_loss[contender.name].append(_measure(contender, (1.0, factor, 1.0), draws, seed))
            found.all_losses[contender.name].append(_measure(contender, (factor,) * 3, draws, seed))
    return found


def _measure(contender: Contender, factors: Sequence[float], draws: int, seed: int) -> Summary:
    rng, world, errors = np.random.default_rng(seed), make_world(), []
    for _ in range(draws):
        losses = [loss.times(factor) for loss, factor in zip(world.draw(rng), factors, strict=True)]
        errors.append(world.excess(train(losses, contender).theta))
    return summarise(errors)
