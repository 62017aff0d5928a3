"""Scores of a method over worlds of known truth."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from arml.lab.run import Line
from arml.lab.run_kinds import Suite
from arml.report.data.comparison import Comparison

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
MAIN_ONLY, UNIFORM, ORACLE = Line("main_only"), Line("joint", "uniform"), Line("oracle")
DRAWS = 2000
"""Draws of the bootstrap."""
LEAST_GAIN = 1.0
"""Worlds in which the oracle gains fewer points over uniform weights say nothing about the share of its gain."""
SCORES_NOTE = (
    "in points of the test error, means over seeds. harm: error minus that of the main task alone. gain: error of "
    "uniform weights minus the method's, mean over worlds. share: sum of gains over the sum of the oracle's gains, in "
    f"worlds where the oracle gains at least {LEAST_GAIN:g} point. regret: error minus the lower of main task only and "
    "uniform weights. AUC: how often a task that helps ends with a higher weight than one that does not, ties count "
    "half, mean over worlds that have both. Worst: the largest mean of a world."
)
INTERVAL_NOTE = (
    f"95 % interval: percentiles of {DRAWS} bootstrap draws of seeds within every world, the same draws for all "
    "methods; with few seeds it is too narrow."
)


class Score(NamedTuple):
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float
    world: str = ""
    """The world it comes from, if it comes from one."""


@dataclass(frozen=True)
class WorldResults:
    """What all lines did in one world, on the seeds that every one of them has."""

    world: str
    knows_truth: bool
    errors: dict[Line, Numbers]
    """Test errors in %, [seeds]."""
    aucs: dict[Line, Numbers] = field(default_factory=dict)
    """For lines with weights, in worlds with tasks that help and others, [seeds]."""

    def oracle(self) -> Numbers | None:
        """The oracle's errors: where no task helps it is the main task alone."""
        if ORACLE in self.errors:
            return self.errors[ORACLE]
        return self.errors[MAIN_ONLY] if self.knows_truth else None


class MethodScores(NamedTuple):
    """All scores of a line."""

    line: Line
    worlds: int
    """Number of worlds it was run in."""
    harm: Score
    gain: Score
    share: Score | None
    regret: Score
    auc: Score | None
    regrets: dict[str, float]
    """Mean regret by world."""


def world_results(compared: Sequence[Comparison]) -> list[WorldResults]:
    """One entry per world with finished runs of the main task alone and of uniform weights."""
    found = [_results_of(comparison) for comparison in compared if comparison.subject.setting == Suite.setting]
    return [one for one in found if one is not None]


def _results_of(comparison: Comparison) -> WorldResults | None:
    run = next(run for run in comparison.runs if isinstance(run, Suite))
    finished = {line: by_seed for line, by_seed in comparison.finished.items() if by_seed}
    if MAIN_ONLY not in finished or UNIFORM not in finished:
        return None
    # A line that has not got far must not take seeds away from the others.
    needed = [MAIN_ONLY, UNIFORM, *([ORACLE] if ORACLE in finished else [])]
    seeds = sorted(set.intersection(*(set(finished[line]) for line in needed)))
    whole = [line for line, by_seed in finished.items() if set(seeds) <= set(by_seed)]
    if not seeds:
        return None
    errors = {line: np.array([comparison.errors(line)[seed] for seed in seeds]) for line in whole}
    aucs = {}
    for line in whole:
        weights = [finished[line][seed].outcome["weights"] for seed in seeds]
        found = [weight_auc(one, run.helpful) for one in weights]
        if line != ORACLE and all(auc is not None for auc in found):
            aucs[line] = np.array(found, dtype=float)
    return WorldResults(comparison.subject.dataset, run.kind != "real", errors, aucs)


def weight_auc(weights: Mapping[str, float], helpful: Sequence[str]) -> float | None:
    """The share of pairs of a task that helps and one that does not in which the first has the higher weight.

    Ties count half. ``None`` unless there are tasks of both kinds.

    >>> weight_auc({"good": 1.5, "same": 1.0, "bad": 1.0}, helpful=["good", "same"])
    0.75
    """
    good = [weight for name, weight in weights.items() if name in helpful]
    bad = [weight for name, weight in weights.items() if name not in helpful]
    if not good or not bad:
        return None
    return sum((a > b) + 0.5 * (a == b) for a in good for b in bad) / (len(good) * len(bad))


def leaderboard(results: Sequence[WorldResults]) -> list[MethodScores]:
    """The scores of every line but the oracle, each from the worlds it was run in; the least worst regret first."""
    lines = dict.fromkeys(line for one in results for line in one.errors)
    found = [score_line(line, [one for one in results if line in one.errors]) for line in lines if line != ORACLE]
    return sorted(found, key=lambda one: (one.regret.value, -one.gain.value))


def score_line(line: Line, results: Sequence[WorldResults]) -> MethodScores:
    """The scores of one line, from the worlds it was run in."""
    names = [one.world for one in results]
    harm = [one.errors[line] - one.errors[MAIN_ONLY] for one in results]
    gain = [one.errors[UNIFORM] - one.errors[line] for one in results]
    columns = [np.stack([one.errors[line], one.errors[MAIN_ONLY], one.errors[UNIFORM]]) for one in results]
    ranked = [one.aucs[line] for one in results if line in one.aucs]
    return MethodScores(
        line,
        len(results),
        _worst(names, [h[None] for h in harm], lambda means: means[0]),
        _interval([g[None] for g in gain], _mean),
        _share(line, results),
        _worst(names, columns, _regret),
        _interval([a[None] for a in ranked], _mean) if ranked else None,
        {name: float(_regret(column.mean(axis=1))) for name, column in zip(names, columns, strict=True)},
    )


def _regret(means: Numbers) -> Numbers:
    """Error minus the lower of the two references; [3, draws] -> [draws]."""
    found: Numbers = means[0] - np.minimum(means[1], means[2])
    return found


def _share(line: Line, results: Sequence[WorldResults]) -> Score | None:
    parts = []
    for one in results:
        oracle = one.oracle()
        if oracle is not None and float((one.errors[UNIFORM] - oracle).mean()) >= LEAST_GAIN:
            parts.append(np.stack([one.errors[UNIFORM] - one.errors[line], one.errors[UNIFORM] - oracle]))
    return _interval(parts, _ratio) if parts else None


def _ratio(means: Sequence[Numbers]) -> Numbers:
    """The sum of the first quantity over the sum of the second; 0 in a draw in which the oracle gains nothing."""
    ours, most = np.sum(means, axis=0)
    return np.where(most > 0, ours / np.where(most > 0, most, 1.0), 0.0)


def _mean(means: Sequence[Numbers]) -> Numbers:
    found: Numbers = np.mean(means, axis=0)[0]
    return found


def _worst(names: Sequence[str], columns: Sequence[Numbers], measure: Callable[[Numbers], Numbers]) -> Score:
    """The largest of a measure over worlds; every draw of the bootstrap has its own worst world."""
    found = [float(measure(column.mean(axis=1))) for column in columns]
    score = _interval(columns, lambda means: np.max([measure(mean) for mean in means], axis=0))
    return score._replace(world=names[found.index(max(found))])


def _interval(columns: Sequence[Numbers], measure: Callable[[Sequence[Numbers]], Numbers]) -> Score:
    """A measure of the worlds' means, and its interval.

    Args:
        columns: for every world, [quantities, seeds].
        measure: the worlds' means, each [quantities, draws] -> [draws].
    """
    value = float(measure([column.mean(axis=1, keepdims=True) for column in columns])[0])
    if all(column.shape[1] < 2 for column in columns):
        return Score(value, -math.inf, math.inf)
    rng = np.random.default_rng(0)
    rows = [rng.integers(column.shape[1], size=(DRAWS, column.shape[1])) for column in columns]
    drawn = [column[:, chosen].mean(axis=2) for column, chosen in zip(columns, rows, strict=True)]
    low, high = np.percentile(measure(drawn), [2.5, 97.5])
    return Score(value, float(low), float(high))
