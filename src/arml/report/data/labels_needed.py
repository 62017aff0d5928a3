"""How many labels a line needs to reach a result, and what share that is of what another line needs."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from arml.lab.run import Line
from arml.report.data.summary import summarise
from arml.report.data.topics import Topic, is_on_axis
from arml.report.titles import uses_labels


class LabelsNeeded(NamedTuple):
    """How many labels one seed needs; ``None``: the most labels tried do not reach the result."""

    labels: float | None
    at_most: bool = False
    """Whether the fewest labels tried are already enough."""

    def is_known(self) -> bool:
        """Whether it is a number, not only a bound."""
        return self.labels is not None and not self.at_most


class GeometricMean(NamedTuple):
    """The geometric mean of positive numbers over seeds, with its 95 % interval."""

    mean: float
    low: float
    high: float
    n: int

    def format(self, factor: float = 1.0, unit: str = "") -> str:
        """Mean and interval times ``factor``, rounded to three digits.

        >>> GeometricMean(0.5, 0.25, 1.0, 3).format(100, " %")
        '50 % (25 to 100)'
        """
        numbers = [f"{float(f'{factor * value:.3g}'):g}" for value in (self.mean, self.low, self.high)]
        return f"{numbers[0]}{unit}" + (f" ({numbers[1]} to {numbers[2]})" if self.n > 1 else "")

    def excludes_one(self) -> bool:
        """Whether the interval lies on one side of 1; never with a single seed."""
        return self.n > 1 and not self.low <= 1 <= self.high


def labels_needed(shortfalls: Mapping[float, float], level: float) -> LabelsNeeded:
    """Labels at which the shortfall first falls to ``level``, on straight lines over log(labels).

    Points with no labels or with all labels have no place on that axis: they are left out.

    >>> labels_needed({10: 40.0, 1000: 20.0}, 30.0)
    LabelsNeeded(labels=100.0..., at_most=False)
    """
    points = [(math.log(n), shortfalls[n]) for n in sorted(shortfalls) if is_on_axis(n)]
    if points and points[0][1] <= level:
        return LabelsNeeded(math.exp(points[0][0]), at_most=True)
    for (x, shortfall), (next_x, following) in pairwise(points):
        if following <= level:
            return LabelsNeeded(math.exp(x + (next_x - x) * (shortfall - level) / (shortfall - following)))
    return LabelsNeeded(None)


def labels_needed_by_seed(topic: Topic, line: Line, level: float) -> dict[int, LabelsNeeded]:
    """Labels that each seed of the line needs, for seeds with two numbers of labels or more."""
    several = {seed: found for seed, found in topic.shortfalls[line].items() if sum(map(is_on_axis, found)) > 1}
    return {seed: labels_needed(found, level) for seed, found in several.items()}


def paired_labels_needed(
    topic: Topic, line: Line, level: float, reference: Line
) -> list[tuple[LabelsNeeded, LabelsNeeded]]:
    """Labels that the line and the reference need, on seeds that have both; empty if the reference uses no labels."""
    if reference not in topic.shortfalls or not uses_labels(reference):
        return []
    ours, theirs = (labels_needed_by_seed(topic, one, level) for one in (line, reference))
    return [(ours[seed], theirs[seed]) for seed in ours if seed in theirs]


def saving(topic: Topic, line: Line, level: float, reference: Line) -> GeometricMean | None:
    """Labels the line needs as a share of what the reference needs, on seeds for which both are known."""
    both = paired_labels_needed(topic, line, level, reference)
    known = [(ours, theirs) for ours, theirs in both if ours.is_known() and theirs.is_known()]
    return geometric_mean([(ours.labels or 1) / (theirs.labels or 1) for ours, theirs in known])


class LabelsFactor(NamedTuple):
    """How many times as many labels another line needs for the same result."""

    factor: GeometricMean
    at_least: bool
    """Whether the most labels tried are not enough on some seed, which then counts with these."""


def labels_factor(topic: Topic, line: Line, alone: Line, labels: float) -> LabelsFactor | None:
    """How many times ``labels`` the line ``alone`` needs for the result that ``line`` has with them.

    ``None`` if that is unknown on every seed, or if the fewest labels tried are enough on some seed.
    """
    if not is_on_axis(labels) or alone not in topic.shortfalls or line not in topic.shortfalls:
        return None
    found, at_least = [], False
    for seed, shortfalls in topic.shortfalls[alone].items():
        level, tried = topic.shortfalls[line].get(seed, {}).get(labels), [n for n in shortfalls if is_on_axis(n)]
        if level is None or len(tried) < 2:
            continue
        needed = labels_needed(shortfalls, level)
        if needed.at_most:
            return None
        at_least = at_least or needed.labels is None
        found.append((needed.labels or max(tried)) / labels)
    mean = geometric_mean(found)
    return LabelsFactor(mean, at_least) if mean else None


def geometric_mean(values: Sequence[float]) -> GeometricMean | None:
    """exp(mean of log ± t(0.975, n - 1) s / sqrt(n)); ``None`` without values."""
    if not values:
        return None
    logs = summarise([math.log(value) for value in values])
    high = math.exp(logs.high) if logs.high < 700 else math.inf
    return GeometricMean(math.exp(logs.mean), math.exp(logs.low), high, logs.n)
