"""Do several methods differ over several data sets? Friedman's test and Nemenyi's critical difference.

Demšar, *Statistical Comparisons of Classifiers over Multiple Data Sets*, JMLR 7, 2006, sections 3.2.2 and 3.2.4.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

ALPHA = 0.05


class Ranking(NamedTuple):
    """Mean ranks of k methods over N data sets, and which differences between them are established."""

    mean_ranks: Mapping[str, float]
    """By method, the best (least) first."""
    num_sets: int
    friedman: float
    """Friedman's chi-square in the form of Iman and Davenport, F with k - 1 and (k - 1)(N - 1) degrees of freedom."""
    p_value: float
    critical_difference: float
    """Two methods differ at the level 0.05 if their mean ranks differ by at least this (Nemenyi)."""

    def cliques(self) -> list[tuple[str, ...]]:
        """The largest groups of neighbours in which no difference is established.

        >>> Ranking({"a": 1.0, "b": 1.5, "c": 3.0}, 10, 0.0, 1.0, 1.6).cliques()
        [('a', 'b'), ('b', 'c')]
        """
        names, ranks = list(self.mean_ranks), list(self.mean_ranks.values())
        groups = [
            [j for j in range(first, len(names)) if ranks[j] - ranks[first] < self.critical_difference]
            for first in range(len(names))
        ]
        largest = [group for i, group in enumerate(groups) if not i or group[-1] > groups[i - 1][-1]]
        return [tuple(names[j] for j in group) for group in largest if len(group) > 1]


def rank_methods(errors: Mapping[str, Sequence[float]]) -> Ranking:
    """Ranks methods by errors on the same data sets, in the same order; equal errors share their rank.

    Raises:
        ValueError: If there are fewer than two methods or two data sets, or different numbers of errors.
    """
    counts = {name: len(values) for name, values in errors.items()}
    if len(errors) < 2 or len(set(counts.values())) != 1 or min(counts.values()) < 2:
        raise ValueError(f"Ranks need two methods or more on the same two data sets or more. Got {counts}.")
    ranks = stats.rankdata(np.array([*errors.values()]), axis=0)
    k, n = ranks.shape
    mean = ranks.mean(axis=1)
    chi_square = 12 * n / (k * (k + 1)) * (float((mean**2).sum()) - k * (k + 1) ** 2 / 4)
    left = n * (k - 1) - chi_square
    f = math.inf if left <= 0 else (n - 1) * chi_square / left
    ordered = sorted(zip(errors, map(float, mean), strict=True), key=lambda pair: pair[1])
    return Ranking(dict(ordered), n, f, float(stats.f.sf(f, k - 1, (k - 1) * (n - 1))), nemenyi_difference(k, n, ALPHA))


def nemenyi_difference(num_methods: int, num_sets: int, alpha: float) -> float:
    """The critical difference of mean ranks: q sqrt(k (k + 1) / (6 N)), q from the studentised range."""
    q = float(stats.studentized_range.ppf(1 - alpha, num_methods, math.inf)) / math.sqrt(2)
    return q * math.sqrt(num_methods * (num_methods + 1) / (6 * num_sets))
