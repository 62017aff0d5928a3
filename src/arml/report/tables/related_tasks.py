"""The highest and lowest weights of a main task, and a matrix of weights over several main tasks.

One main task says which weights are high, not which tasks are related: that takes the matrix.
"""

from collections.abc import Sequence

from arml.lab.run import Line
from arml.report.data.comparison import Comparison
from arml.report.data.final_weights import ALIKE, Matrix, rank_tasks
from arml.report.data.paper import TABLE_3
from arml.report.data.summary import FORMULA
from arml.report.tables.sheet import Sheet, number, text, weight_cell
from arml.report.titles import RELATEDNESS, labels_title, line_title, subject_title

MOST_RELATED = 5
"""Tasks listed at either end, as in the paper's Table 3."""
FEWEST_RELATED = 4
"""With fewer auxiliary tasks than this, no list is made."""

_RULED_BY_TASK = (
    "The rows are alike (mean rank correlation {:.2f}): the same tasks have the weight whatever the main task is. "
    "These weights do not say which tasks are related."
)


def related_sheets(compared: Sequence[Comparison], *, paper: bool) -> list[Sheet]:
    """A table for every main task with many auxiliary tasks: those with the highest and the lowest weights."""
    return [
        _sheet(comparison, line, paper=paper)
        for comparison in compared
        for line in comparison.lines_with(RELATEDNESS)
        if len(comparison.weights(line)) >= FEWEST_RELATED
    ]


def _sheet(comparison: Comparison, line: Line, *, paper: bool) -> Sheet:
    tasks = rank_tasks(comparison, line)
    length = min(MOST_RELATED, len(tasks) // 2)
    theirs = TABLE_3.get(comparison.subject.main) if paper and comparison.subject.dataset == "celeba" else None
    headings = ("", "highest", "weight", "lowest", "weight ")
    rows = []
    for i in range(length):
        (most, high), (least, low) = tasks[i], tasks[-1 - i]
        row = (text(f"{i + 1}"), text(most), weight_cell(high), text(least), weight_cell(low))
        rows.append((*row, text(theirs[0][i]), text(theirs[1][i])) if theirs else row)
    return Sheet(
        f"Tasks with the highest and lowest final weights: {subject_title(comparison.subject)}, {line_title(line)}",
        headings + (("paper: most", "paper: least") if theirs else ()),
        tuple(rows),
        (f"weight: {FORMULA}; 1 is an equal share.", "Intervals that overlap do not establish an order."),
        brief=False,
    )


def matrix_sheet(matrix: Matrix) -> Sheet:
    """The matrix as a table: rows are main tasks, columns auxiliary tasks. It shows relatedness if its rows differ."""
    likeness = matrix.likeness()
    alike = likeness >= ALIKE
    return Sheet(
        f"{'Mean' if alike else 'Relatedness, as mean'} final weights: {matrix.subject.dataset}, "
        f"{labels_title(matrix.subject)}, {line_title(matrix.line)}",
        ("main task", *matrix.tasks),
        tuple(
            (text(main), *(number(weight and weight._replace(n=1)) for weight in row))
            for main, row in zip(matrix.mains, matrix.weights, strict=True)
        ),
        (
            "Means over seeds; 1 is an equal share. Empty where main and auxiliary task are the same.",
            *([_RULED_BY_TASK.format(likeness)] if alike else []),
        ),
    )
