"""Which auxiliary tasks go with a main task: the highest and lowest weights, and a matrix over main tasks."""

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from arml.lab.run import Line, Subject
from arml.report.data.comparison import Comparison
from arml.report.data.paper import TABLE_3
from arml.report.data.summary import FORMULA, Summary, summarise
from arml.report.tables.sheet import Sheet, number, text
from arml.report.titles import ARMLS, labels_title, line_title, subject_title

LISTED = 5
"""Tasks at either end of the list, as in the paper's Table 3."""
FEWEST = 4
"""Of fewer auxiliary tasks there is nothing to list."""


class Matrix(NamedTuple):
    """Mean final weight of every auxiliary task, for several main tasks."""

    subject: Subject
    """One of its subjects, for names."""
    line: Line
    mains: list[str]
    tasks: list[str]
    weights: list[list[Summary | None]]
    """A row for each main task; ``None`` where the two are the same."""


def related_sheets(compared: Sequence[Comparison], *, paper: bool) -> list[Sheet]:
    """For every main task with many auxiliaries: those with the highest and those with the lowest weights."""
    return [
        _sheet(comparison, line, paper=paper)
        for comparison in compared
        for line in comparison.with_methods(ARMLS[:1])
        if len(comparison.weights(line)) >= FEWEST
    ]


def ranked(comparison: Comparison, line: Line) -> list[tuple[str, Summary]]:
    """Auxiliary tasks and their final weights over seeds, the highest first."""
    found = {task: summarise([*by_seed.values()]) for task, by_seed in comparison.weights(line).items()}
    return sorted(found.items(), key=lambda item: -item[1].mean)


def _sheet(comparison: Comparison, line: Line, *, paper: bool) -> Sheet:
    tasks = ranked(comparison, line)
    listed = min(LISTED, len(tasks) // 2)
    theirs = TABLE_3.get(comparison.subject.main) if paper and comparison.subject.dataset == "celeba" else None
    headings = ("", "most related", "weight", "least related", "weight ")
    rows = []
    for i in range(listed):
        (most, high), (least, low) = tasks[i], tasks[-1 - i]
        row = (text(f"{i + 1}"), text(most), number(high), text(least), number(low))
        rows.append((*row, text(theirs[0][i]), text(theirs[1][i])) if theirs else row)
    return Sheet(
        f"Most and least related tasks by final weight: {subject_title(comparison.subject)}, {line_title(line)}",
        headings + (("paper: most", "paper: least") if theirs else ()),
        tuple(rows),
        (f"weight: {FORMULA}; 1 is an equal share.", "Intervals that overlap do not establish an order."),
        brief=False,
    )


def matrices(compared: Sequence[Comparison]) -> list[Matrix]:
    """One for each data set, number of labels and line of ARML that was run for several main tasks."""
    grouped: dict[tuple[str, str, float, Line], list[Comparison]] = defaultdict(list)
    for comparison in compared:
        for line in (line for line in comparison.with_methods(ARMLS[:1]) if comparison.weights(line)):
            setting, dataset, _, labels = comparison.subject
            grouped[setting, dataset, labels, line].append(comparison)
    return [_matrix(line, members) for (*_, line), members in grouped.items() if len(members) > 1]


def _matrix(line: Line, members: Sequence[Comparison]) -> Matrix:
    found = {comparison.subject.main: dict(ranked(comparison, line)) for comparison in members}
    tasks = sorted({task for weights in found.values() for task in weights}, key=_by_number)
    rows = [[weights.get(task) for task in tasks] for weights in found.values()]
    return Matrix(members[0].subject, line, list(found), tasks, rows)


def _by_number(name: str) -> list[tuple[int, str]]:
    """Class2 comes before Class10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def matrix_sheet(matrix: Matrix) -> Sheet:
    """Rows are main tasks, columns auxiliary ones."""
    return Sheet(
        f"Mean final weights over main tasks: {matrix.subject.dataset}, {labels_title(matrix.subject)}, "
        f"{line_title(matrix.line)}",
        ("main task", *matrix.tasks),
        tuple(
            (text(main), *(number(weight and weight._replace(n=1)) for weight in row))
            for main, row in zip(matrix.mains, matrix.weights, strict=True)
        ),
        ("Means over seeds; 1 is an equal share. Empty where main and auxiliary task are the same.",),
    )
