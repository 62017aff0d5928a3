"""What a run recorded over its training, averaged over seeds."""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import mean
from typing import NamedTuple

import numpy as np

from arml.lab.trace import Record
from arml.report.data.comparison import Finished
from arml.report.data.summary import Summary, summarise

MOST_CURVES = 8
"""Tasks in one picture: as many as there are colours that everybody can tell apart."""


class Curve(NamedTuple):
    """Values over steps."""

    steps: list[float]
    values: list[float]


class Band(NamedTuple):
    """A mean over seeds with its 95 % interval at every step."""

    steps: list[float]
    summaries: list[Summary]


def of_seed(run: Finished, key: str, task: str) -> Curve:
    """What the run recorded of a task under ``key``, ``"weights"`` or ``"agreement"``; numbers only."""
    points = [(record["step"], record[key][task]) for record in _recorded(run, key) if task in record[key]]
    finite = [(step, value) for step, value in points if math.isfinite(value)]
    return Curve([step for step, _ in finite], [value for _, value in finite])


def band(curves: Sequence[Curve]) -> Band:
    """Mean and interval on the steps of all seeds that lie where every seed has been; straight lines in between.

    >>> band([Curve([10, 20], [0.0, 1.0]), Curve([10, 20], [1.0, 2.0])]).summaries[1].mean
    1.5
    """
    curves = [curve for curve in curves if curve.steps]
    if not curves:
        return Band([], [])
    first, last = max(curve.steps[0] for curve in curves), min(curve.steps[-1] for curve in curves)
    steps = sorted({step for curve in curves for step in curve.steps if first <= step <= last})
    values = np.array([np.interp(steps, curve.steps, curve.values) for curve in curves])
    return Band(steps, [summarise(column) for column in values.T.tolist()])


def over_training(runs: Mapping[int, Finished], key: str, tasks: Sequence[str]) -> dict[str, Band]:
    """A band for each task."""
    return {task: band([of_seed(run, key, task) for run in runs.values()]) for task in tasks}


def mean_over_training(runs: Mapping[int, Finished], key: str, task: str) -> dict[int, float]:
    """The mean over recorded steps, by seed."""
    found = {seed: of_seed(run, key, task).values for seed, run in runs.items()}
    return {seed: mean(values) for seed, values in found.items() if values}


def shown_tasks(weights: Mapping[str, float]) -> list[str]:
    """All tasks if they are few; else half as many with the largest weights as there are colours, and the smallest.

    >>> shown_tasks({"a": 1.0, "b": 2.0})
    ['a', 'b']
    """
    if len(weights) <= MOST_CURVES:
        return list(weights)
    ranked = sorted(weights, key=lambda task: -weights[task])
    return ranked[: MOST_CURVES // 2] + ranked[-MOST_CURVES // 2 :]


def _recorded(run: Finished, key: str) -> Iterable[Record]:
    return (record for record in run.recorded.records if key in record and "test_error" not in record)
