"""Tables of final weights at different numbers of labels."""

from collections.abc import Sequence

from arml.lab.run import Line
from arml.report.data.comparison import Comparison
from arml.report.data.scarcity import FEWEST_CORRELATED, group_by_scarcity, weight_agreement
from arml.report.data.summary import FORMULA, summarise
from arml.report.tables.sheet import Sheet, text, weight_cell
from arml.report.titles import labels_title, line_title, topic_title

AGREEMENT_FORMULA = (
    "agreement of weights: Pearson's correlation over auxiliary tasks between the final weights at two numbers of "
    "labels, mean over all pairs of the numbers shown, for each seed; then " + FORMULA
)


def scarcity_sheets(compared: Sequence[Comparison]) -> list[Sheet]:
    """A table for every line of ARML run at several numbers of labels: final weights, and how much they agree."""
    return [_sheet(line, members) for line, members in group_by_scarcity(compared)]


def _sheet(line: Line, members: Sequence[Comparison]) -> Sheet:
    weights = [
        {task: summarise([*by_seed.values()]) for task, by_seed in comparison.weights(line).items()}
        for comparison in members
    ]
    tasks = list(dict.fromkeys(task for one in weights for task in one))
    return Sheet(
        f"Final weights at different numbers of labels: {topic_title(members[0].subject)}, {line_title(line)}",
        ("auxiliary task", *(labels_title(comparison.subject) for comparison in members)),
        tuple((text(task), *(weight_cell(one.get(task)) for one in weights)) for task in tasks),
        (_agreement_note(line, members, len(tasks)), AGREEMENT_FORMULA),
    )


def _agreement_note(line: Line, members: Sequence[Comparison], num_tasks: int) -> str:
    agreement = weight_agreement(line, members)
    start = f"Agreement of weights between {', '.join(labels_title(comparison.subject) for comparison in members)}"
    if agreement is not None:
        return f"{start}: {agreement}, n = {agreement.n}."
    if num_tasks < FEWEST_CORRELATED:
        return (
            f"{start}: no number; with fewer than {FEWEST_CORRELATED} tasks correlation can only be 1, -1 or undefined."
        )
    return (
        f"{start}: undefined. The weights are all the same, fewer than {FEWEST_CORRELATED} tasks are common, or no "
        "seed has all of these."
    )
