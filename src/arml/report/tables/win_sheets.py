"""Tables of how often, and by how much, weightings beat the main task alone and uniform weights."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from arml.lab.run import Line
from arml.report.data.ranks import Ranking
from arml.report.data.wins import Cells, Duel, duel
from arml.report.tables.sheet import Cell, Sheet, difference, text
from arml.report.titles import MAIN_ONLY, line_title, order

MEAN_NOTE = (
    "difference: test error minus that of the other line, in points; for numbers the error is the share of variance "
    "that is not explained. Median over all cells; mean of each table, then over tables ± t(0.975, N - 1) s / sqrt(N)"
)


def win_sheets(cells: Cells) -> list[Sheet]:
    """A table against the main task alone, and one against uniform weights; lines that are missing have none."""
    lines = sorted(next(iter(cells.values()))[0], key=order)
    alone = [line for line in lines if line.learner in MAIN_ONLY]
    equal = [line for line in lines if line.method == "uniform"]
    return [_sheet(cells, lines, other) for other in (*alone[:1], *equal[:1])]


def _sheet(cells: Cells, lines: list[Line], other: Line) -> Sheet:
    return Sheet(
        f"Against {line_title(other)}: {sum(map(len, cells.values()))} cells of {len(cells)} tables",
        ("", "better", "equal", "median difference", "mean difference"),
        tuple(_row(line, duel(cells, line, other)) for line in lines if line != other),
        (MEAN_NOTE, "cell: a main target, a number of labels and a seed; better: cells with a lower test error"),
    )


def _row(line: Line, found: Duel) -> tuple[Cell, ...]:
    return (
        text(line_title(line)),
        Cell(f"{found.wins} ({100 * found.wins / found.cells:.0f} %)", found.wins),
        Cell(str(found.ties), found.ties),
        Cell(f"{found.median:+.2f}", found.median),
        difference(found.mean),
    )


def tables_sheet(cells: Cells) -> Sheet:
    """The mean test error of every line on every table."""
    lines = sorted(next(iter(cells.values()))[0], key=order)
    rows = tuple(
        (
            text(name),
            Cell(str(len(members)), len(members)),
            *(Cell(f"{mean:.2f}", mean) for mean in (_mean(members, line) for line in lines)),
        )
        for name, members in cells.items()
    )
    return Sheet("Mean test error by table", ("", "cells", *(line_title(line) for line in lines)), rows)


def _mean(members: Sequence[Mapping[Line, float]], line: Line) -> float:
    return fmean(cell[line] for cell in members)


def ranking_sheet(ranking: Ranking, titles: Mapping[str, str]) -> Sheet:
    """Mean ranks, and what Friedman's and Nemenyi's tests say."""
    rows = tuple((text(titles[name]), Cell(f"{rank:.2f}", rank)) for name, rank in ranking.mean_ranks.items())
    groups = ["; ".join(titles[name] for name in group) for group in ranking.cliques()]
    differ = "differ" if ranking.p_value < 0.05 else "are not shown to differ"
    return Sheet(
        f"Mean ranks over {ranking.num_sets} tables (1 is best)",
        ("", "mean rank"),
        rows,
        (
            f"Friedman's test (Iman and Davenport): F = {ranking.friedman:.2f}, p = {ranking.p_value:.3f}: the lines "
            f"{differ}",
            f"Nemenyi's critical difference at 0.05: {ranking.critical_difference:.2f}",
            *(f"no difference established among: {group}" for group in groups),
            "ranks inside every cell, averaged over the cells of a table, then ranked per table: cells of a table "
            "share rows (Demšar, JMLR 7, 2006)",
        ),
    )
