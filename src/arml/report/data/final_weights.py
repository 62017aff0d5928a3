"""Final weights over seeds: ranked for one main task, as a matrix over several."""

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from scipy.stats import rankdata

from arml.lab.run import Line, Subject
from arml.report.data.comparison import Comparison
from arml.report.data.summary import Summary, summarise
from arml.report.titles import RELATEDNESS

ALIKE = 0.5
"""From this mean rank correlation of its rows on, a matrix says little about pairs of tasks."""


class Matrix(NamedTuple):
    """Mean final weight of every auxiliary task, for several main tasks."""

    subject: Subject
    """One of its subjects, for titles."""
    line: Line
    mains: list[str]
    tasks: list[str]
    weights: list[list[Summary | None]]
    """A row for each main task; ``None`` where the two are the same."""

    def likeness(self) -> float:
        """Spearman's correlation of two rows over their common tasks, mean over all pairs of rows; NaN if unknown.

        Near 1, the same tasks have the weight whatever the main task is: then weights do not say what is related.
        """
        found = [_rank_correlation(a, b) for a, b in combinations(self.weights, 2)]
        known = [one for one in found if not math.isnan(one)]
        return sum(known) / len(known) if known else math.nan


def rank_tasks(comparison: Comparison, line: Line) -> list[tuple[str, Summary]]:
    """Auxiliary tasks and their final weights over seeds, the highest first."""
    found = {task: summarise([*by_seed.values()]) for task, by_seed in comparison.weights(line).items()}
    return sorted(found.items(), key=lambda item: -item[1].mean)


def matrices(compared: Sequence[Comparison]) -> list[Matrix]:
    """A matrix for each data set, number of labels and line of ARML that was run for several main tasks."""
    grouped: dict[tuple[str, str, float, Line], list[Comparison]] = defaultdict(list)
    for comparison in compared:
        for line in (line for line in comparison.lines_with(RELATEDNESS) if comparison.weights(line)):
            setting, dataset, _, labels = comparison.subject
            grouped[setting, dataset, labels, line].append(comparison)
    return [_matrix(line, members) for (*_, line), members in grouped.items() if len(members) > 1]


def _matrix(line: Line, members: Sequence[Comparison]) -> Matrix:
    found = {comparison.subject.main: dict(rank_tasks(comparison, line)) for comparison in members}
    tasks = sorted({task for weights in found.values() for task in weights}, key=_natural_order)
    rows = [[weights.get(task) for task in tasks] for weights in found.values()]
    return Matrix(members[0].subject, line, list(found), tasks, rows)


def _rank_correlation(a: Sequence[Summary | None], b: Sequence[Summary | None]) -> float:
    """NaN with fewer than three common tasks, or if all weights of a row are the same."""
    common = [(one.mean, other.mean) for one, other in zip(a, b, strict=True) if one is not None and other is not None]
    if len(common) < 3:
        return math.nan
    x, y = (rankdata(column) - (len(common) + 1) / 2 for column in zip(*common, strict=True))
    size = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / size if size else math.nan


def _natural_order(name: str) -> list[tuple[int, str]]:
    """A sort key that puts Class2 before Class10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]
