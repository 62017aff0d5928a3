"""Do the weights depend on how many labels there are?"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import StatisticsError, correlation, mean

from arml.lab.run import Line
from arml.report.data.comparison import Comparison
from arml.report.data.summary import FORMULA, Summary, summarise
from arml.report.tables.sheet import Sheet, number, text
from arml.report.titles import ARMLS, labels_title, line_title, topic_title

AGREEMENT_FORMULA = (
    "agreement of weights: Pearson's correlation over auxiliary tasks between the final weights at two numbers of "
    "labels, mean over all pairs of the numbers shown, for each seed; then " + FORMULA
)
FEWEST = 3
"""Auxiliary tasks without which there is no correlation to speak of."""


def by_scarcity(compared: Sequence[Comparison]) -> list[tuple[Line, list[Comparison]]]:
    """Lines of ARML and its kin that were run at several numbers of labels, with the comparisons in that order."""
    grouped: dict[tuple[tuple[str, str, str], Line], list[Comparison]] = defaultdict(list)
    for comparison in compared:
        for line in comparison.with_methods(ARMLS):
            grouped[comparison.subject[:3], line].append(comparison)
    return [(line, _levels(members)) for (_, line), members in grouped.items() if len(members) > 1]


def _levels(members: Sequence[Comparison]) -> list[Comparison]:
    """At most three: the fewest labels, the most that were counted, and all there are; or fewest, middle and most."""
    if len(members) <= 3:
        return list(members)
    middle = -2 if members[-1].subject.labels == math.inf else len(members) // 2
    return [members[0], members[middle], members[-1]]


def weights_agree(line: Line, members: Sequence[Comparison]) -> Summary | None:
    """How much final weights at different numbers of labels agree, over seeds; ``None`` where nothing can be said.

    Two points are always on a straight line, so that three tasks are needed.
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
    if len(tasks) < FEWEST:
        return None
    pairs = combinations([[one[task] for task in tasks] for one in weights], 2)
    found = [value for value in (_correlation(a, b) for a, b in pairs) if value is not None]
    return mean(found) if found else None


def _correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Undefined for weights that are all the same."""
    try:
        return correlation(a, b)
    except StatisticsError:
        return None


def scarcity_sheets(compared: Sequence[Comparison]) -> list[Sheet]:
    """For every such line: final weights at each number of labels, and how much they agree."""
    return [_sheet(line, members) for line, members in by_scarcity(compared)]


def _sheet(line: Line, members: Sequence[Comparison]) -> Sheet:
    weights = [
        {task: summarise([*by_seed.values()]) for task, by_seed in comparison.weights(line).items()}
        for comparison in members
    ]
    tasks = list(dict.fromkeys(task for one in weights for task in one))
    return Sheet(
        f"Final weights at different numbers of labels: {topic_title(members[0].subject)}, {line_title(line)}",
        ("auxiliary task", *(labels_title(comparison.subject) for comparison in members)),
        tuple((text(task), *(number(one.get(task)) for one in weights)) for task in tasks),
        (_agreement(line, members, len(tasks)), AGREEMENT_FORMULA),
    )


def _agreement(line: Line, members: Sequence[Comparison], num_tasks: int) -> str:
    agree = weights_agree(line, members)
    named = f"Agreement of weights between {', '.join(labels_title(comparison.subject) for comparison in members)}"
    if agree is not None:
        return f"{named}: {agree}, n = {agree.n}."
    if num_tasks < FEWEST:
        return f"{named}: no number; with fewer than {FEWEST} tasks correlation can only be 1, -1 or undefined."
    return f"{named}: undefined (weights that are all the same, or no seed with all of these)."
