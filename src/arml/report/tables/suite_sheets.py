"""The leaderboard of the suite, and the errors in every world."""

from collections.abc import Sequence

from arml.lab.run import Line
from arml.lab.worlds.world import World
from arml.report.data.suite_scores import (
    INTERVAL_NOTE,
    MAIN_ONLY,
    ORACLE,
    SCORES_NOTE,
    UNIFORM,
    MethodScores,
    Score,
    WorldResults,
)
from arml.report.data.summary import FORMULA, summarise
from arml.report.tables.sheet import Cell, Sheet, number, text
from arml.report.titles import order, suite_title

_REFERENCES = (MAIN_ONLY, UNIFORM, ORACLE)


def list_sheet(worlds: Sequence[World]) -> Sheet:
    """What the worlds are."""
    rows = []
    for world in worlds:
        helpful = f"{len(world.helpful)}" if world.knows_truth else "unknown"
        count = len(world.helpful) + len(world.others)
        kinds = (world.name, world.tier, world.kind, f"{count}", helpful, f"{world.labels}", world.network)
        rows.append(tuple(text(word) for word in kinds))
    headings = ("world", "tier", "kind", "auxiliary tasks", "that help", "labels", "network")
    return Sheet("Worlds of known truth", headings, tuple(rows))


def leaderboard_sheet(scores: Sequence[MethodScores], num_worlds: int) -> Sheet:
    """One row per method, the least worst regret first."""
    headings = ("", "worst regret", "worst harm", "mean gain", "share of the oracle's gain", "AUC of weights", "worlds")
    return Sheet(
        f"Suite of known truths: scores over {num_worlds} world{'' if num_worlds == 1 else 's'}",
        headings,
        tuple(_row(one) for one in scores),
        (SCORES_NOTE, INTERVAL_NOTE, *(_worst_note(one) for one in scores if one.line != MAIN_ONLY)),
    )


def _row(one: MethodScores) -> tuple[Cell, ...]:
    share = None if one.share is None else Score(100 * one.share.value, 100 * one.share.low, 100 * one.share.high)
    cells = [_cell(one.regret), _cell(one.harm), _cell(one.gain), _cell(share, 0, " %"), _cell(one.auc)]
    return (text(suite_title(one.line)), *cells, Cell(f"{one.worlds}", one.worlds))


def _worst_note(one: MethodScores) -> str:
    """The worlds that the worst numbers come from; their names are too long for cells."""
    return f"{suite_title(one.line)}: worst regret in {one.regret.world}, worst harm in {one.harm.world}."


def _cell(score: Score | None, digits: int = 2, unit: str = "") -> Cell:
    """The number with its interval."""
    if score is None:
        return Cell("")
    known = score.low > -float("inf")
    interval = f" [{score.low:.{digits}f}, {score.high:.{digits}f}]" if known else ""
    return Cell(f"{score.value:.{digits}f}{unit}{interval}", score.value)


def worlds_sheet(results: Sequence[WorldResults]) -> Sheet:
    """Test error of every line in every world: worlds are rows."""
    lines = sorted({line for one in results for line in one.errors}, key=_place)
    return Sheet(
        "Suite of known truths: test error in % in every world",
        ("world", *(suite_title(line) for line in lines), "n"),
        tuple(_world_row(one, lines) for one in results),
        (
            f"error: {FORMULA}; the network of the last step is tested, once",
            "numbers: the error is the unexplained share of the variance. An empty cell: no run with all seeds.",
        ),
        brief=False,
    )


def brief_worlds_sheet(results: Sequence[WorldResults]) -> Sheet:
    """Mean test errors of the references and of the best method in every world, for a terminal."""
    rows = []
    for one in results:
        means = {line: float(errors.mean()) for line, errors in one.errors.items()}
        methods = {line: mean for line, mean in means.items() if line not in _REFERENCES}
        best = min(methods, key=lambda line: methods[line], default=None)
        cells = [Cell(f"{means[line]:.1f}", means[line]) if line in means else Cell("") for line in _REFERENCES]
        shown = Cell("") if best is None else Cell(f"{methods[best]:.1f} {suite_title(best)}", methods[best])
        rows.append((text(one.world), *cells, shown))
    headings = ("world", "main", "uniform", "oracle", "best method")
    return Sheet("Mean test error in %", headings, tuple(rows))


def _world_row(one: WorldResults, lines: Sequence[Line]) -> tuple[Cell, ...]:
    least = min(float(errors.mean()) for errors in one.errors.values())
    cells = []
    for line in lines:
        errors = one.errors.get(line)
        found = None if errors is None else summarise(errors.tolist())
        cells.append(number(found, strong=found is not None and found.mean == least, digits=1))
    n = len(one.errors[MAIN_ONLY])
    return (text(one.world), *cells, Cell(f"{n}", n))


def _place(line: Line) -> tuple[int, tuple[int, int, str]]:
    return (_REFERENCES.index(line) if line in _REFERENCES else len(_REFERENCES)), order(line)
