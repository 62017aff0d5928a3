"""How much the weights depend on the number of labels."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import StatisticsError, correlation, mean

from arml.lab.run import Line
from arml.report.data.comparison import Comparison
from arml.report.data.summary import Summary, summarise
from arml.report.titles import ARMLS

FEWEST_CORRELATED = 3
"""The fewest auxiliary tasks with a meaningful correlation: two points always lie on a straight line."""


def group_by_scarcity(compared: Sequence[Comparison]) -> list[tuple[Line, list[Comparison]]]:
    """Lines with a variant of ARML run at several numbers of labels, each with its comparisons, fewest labels first."""
    grouped: dict[tuple[tuple[str, str, str], Line], list[Comparison]] = defaultdict(list)
    for comparison in compared:
        for line in comparison.lines_with(ARMLS):
            grouped[comparison.subject[:3], line].append(comparison)
    return [(line, _choose_three(members)) for (_, line), members in grouped.items() if len(members) > 1]


def _choose_three(members: Sequence[Comparison]) -> list[Comparison]:
    """At most three: the fewest labels, the most that were counted, and all labels; or fewest, middle and most."""
    if len(members) <= 3:
        return list(members)
    middle = -2 if members[-1].subject.labels == math.inf else len(members) // 2
    return [members[0], members[middle], members[-1]]


def weight_agreement(line: Line, members: Sequence[Comparison]) -> Summary | None:
    """How much final weights at different numbers of labels agree, over seeds; ``None`` where that is undefined.

    For each seed: Pearson's correlation over auxiliary tasks, mean over all pairs of numbers of labels.
    """
    seeds = set.intersection(*(set(comparison.finished[line]) for comparison in members))
    found = [
        _mean_correlation([comparison.finished[line][seed].outcome["weights"] for comparison in members])
        for seed in sorted(seeds)
    ]
    known = [value for value in found if value is not None]
    return summarise(known) if known else None


def _mean_correlation(weights: Sequence[Mapping[str, float]]) -> float | None:
    tasks = [task for task in weights[0] if all(task in one for one in weights)]
    if len(tasks) < FEWEST_CORRELATED:
        return None
    pairs = combinations([[one[task] for task in tasks] for one in weights], 2)
    found = [value for value in (_correlation(a, b) for a, b in pairs) if value is not None]
    return mean(found) if found else None


def _correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Pearson's correlation; ``None`` for weights that are all the same."""
    try:
        return correlation(a, b)
    except StatisticsError:
        return None
