"""Curves over training: what runs recorded at each step, and the mean over seeds."""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import mean
from typing import NamedTuple

import numpy as np

from arml.lab.trace import Record
from arml.report.data.comparison import Finished
from arml.report.data.summary import Summary, summarise

MOST_CURVES = 8
"""Tasks in one chart: the number of colours that everybody can tell apart."""


class Curve(NamedTuple):
    """Values over steps."""

    steps: list[float]
    values: list[float]


class Band(NamedTuple):
    """A mean over seeds with its 95 % interval at every step."""

    steps: list[float]
    summaries: list[Summary]


def seed_curve(run: Finished, key: str, task: str) -> Curve:
    """A task's recorded ``"weights"`` or ``"agreement"`` (``key``) in one run; finite numbers only."""
    points = [(record["step"], record[key][task]) for record in _training_records(run, key) if task in record[key]]
    finite = [(step, value) for step, value in points if math.isfinite(value)]
    return Curve([step for step, _ in finite], [value for _, value in finite])


def band(curves: Sequence[Curve]) -> Band:
    """Mean and interval over seeds, on the recorded steps within the range that all seeds cover; linear in between.

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


def mean_over_training(runs: Mapping[int, Finished], key: str, task: str) -> dict[int, float]:
    """The mean over recorded steps, by seed."""
    found = {seed: seed_curve(run, key, task).values for seed, run in runs.items()}
    return {seed: mean(values) for seed, values in found.items() if values}


def choose_tasks(weights: Mapping[str, float]) -> list[str]:
    """The tasks to draw: all if they are few, else half with the largest and half with the smallest weights.

    >>> choose_tasks({"a": 1.0, "b": 2.0})
    ['a', 'b']
    """
    if len(weights) <= MOST_CURVES:
        return list(weights)
    ranked = sorted(weights, key=lambda task: -weights[task])
    return ranked[: MOST_CURVES // 2] + ranked[-MOST_CURVES // 2 :]


def _training_records(run: Finished, key: str) -> Iterable[Record]:
    return (record for record in run.recorded.records if key in record and "test_error" not in record)
