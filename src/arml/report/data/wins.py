"""Over many experiments: how often, and by how much, does one line beat another?"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import NamedTuple, TypeAlias

from scipy.stats import rankdata

from arml.lab.run import Line
from arml.report.data.comparison import Comparison
from arml.report.data.ranks import Ranking, rank_methods
from arml.report.data.summary import Summary, summarise

Cells: TypeAlias = Mapping[str, Sequence[Mapping[Line, float]]]
"""By data set, the test errors of all lines; one item for each main task, number of labels and seed."""


class Duel(NamedTuple):
    """One line against another on the same cells."""

    wins: int
    ties: int
    cells: int
    median: float
    """Median over all cells of the difference of errors; below 0 the line is better."""
    mean: Summary
    """Mean difference of each data set, then over data sets."""


def make_cells(compared: Sequence[Comparison]) -> Cells:
    """The cells in which every line has a result."""
    lines = {line for comparison in compared for line in comparison.finished if not line.variant}
    found: dict[str, list[Mapping[Line, float]]] = defaultdict(list)
    for comparison in compared:
        errors = {line: comparison.errors(line) for line in lines}
        for seed in sorted(set.intersection(*(set(by_seed) for by_seed in errors.values()))):
            cell = {line: by_seed[seed] for line, by_seed in errors.items()}
            found[comparison.subject.dataset.split("@")[0]].append(cell)
    return found


def duel(cells: Cells, line: Line, other: Line) -> Duel:
    """``line`` against ``other``."""
    by_set = {name: [cell[line] - cell[other] for cell in members] for name, members in cells.items()}
    everything = [difference for differences in by_set.values() for difference in differences]
    return Duel(
        sum(difference < 0 for difference in everything),
        sum(difference == 0 for difference in everything),
        len(everything),
        median(everything),
        summarise([fmean(differences) for differences in by_set.values()]),
    )


def rank_lines(cells: Cells) -> tuple[Ranking, dict[str, Line]]:
    """Ranks lines inside every cell, averages over the cells of a data set, then ranks these averages per data set.

    Cells of one data set share rows, so they are no independent data sets: Friedman's test sees each data set once.
    Returns the ranking by name, and the line of every name.
    """
    first = next(iter(cells.values()))[0]
    lines = {" ".join(part for part in line if part): line for line in first}
    averages: dict[str, list[float]] = {name: [] for name in lines}
    for members in cells.values():
        ranks = [rankdata([cell[line] for line in lines.values()]) for cell in members]
        for place, name in enumerate(lines):
            averages[name].append(fmean(float(one[place]) for one in ranks))
    return rank_methods(averages), lines
