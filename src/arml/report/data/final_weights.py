"""Final weights over seeds: ranked for one main task, as a matrix over several."""

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from arml.lab.run import Line, Subject
from arml.report.data.comparison import Comparison
from arml.report.data.summary import Summary, summarise
from arml.report.titles import RELATEDNESS


class Matrix(NamedTuple):
    """Mean final weight of every auxiliary task, for several main tasks."""

    subject: Subject
    """One of its subjects, for titles."""
    line: Line
    mains: list[str]
    tasks: list[str]
    weights: list[list[Summary | None]]
    """A row for each main task; ``None`` where the two are the same."""


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


def _natural_order(name: str) -> list[tuple[int, str]]:
    """A sort key that puts Class2 before Class10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]
