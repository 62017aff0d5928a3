"""A critical-difference diagram: mean ranks on a line, methods that do not differ joined by a bar."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from arml.report.data.ranks import Ranking

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STEP = 0.3
"""Height of a line of text, and of a bar."""


def save_diagram(ranking: Ranking, path: Path) -> list[Path]:
    """Writes the diagram as PNG and SVG beside each other; ``path`` has no suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    paths = [path.with_suffix(suffix) for suffix in (".png", ".svg")]
    for one in paths:
        # No date: the same ranks give the same file.
        draw_diagram(ranking).savefig(one, dpi=150, metadata={"Date": None} if one.suffix == ".svg" else None)
    return paths


def draw_diagram(ranking: Ranking) -> Figure:
    """The diagram of Demšar (2006), figure 1: the best ranks are on the left."""
    from matplotlib.figure import Figure  # imported here: it takes a second to load

    count, bars = len(ranking.mean_ranks), ranking.cliques()
    height = STEP * (len(bars) + count / 2 + 4)
    figure = Figure(figsize=(7.5, height), layout="constrained")
    ax = figure.subplots()
    ax.set_xlim(1, count)
    ax.set_ylim(-STEP * (len(bars) + count / 2 + 1), 3 * STEP)
    ax.axis("off")
    _draw_axis(ax, ranking, count)
    for place, group in enumerate(bars, start=1):
        ends = [ranking.mean_ranks[group[0]], ranking.mean_ranks[group[-1]]]
        ax.plot(ends, [-STEP * place] * 2, color="black", linewidth=4, solid_capstyle="butt")
    _draw_names(ax, ranking, -STEP * (len(bars) + 1))
    return figure


def _draw_axis(ax: Axes, ranking: Ranking, count: int) -> None:
    ax.plot([1, count], [0, 0], color="black", linewidth=1)
    for rank in range(1, count + 1):
        ax.plot([rank, rank], [0, STEP / 3], color="black", linewidth=1)
        ax.text(rank, STEP / 2, str(rank), ha="center", va="bottom", fontsize=9)
    width = min(ranking.critical_difference, count - 1)
    ax.plot([1, 1 + width], [2 * STEP] * 2, color="black", linewidth=2)
    label = f"critical difference {ranking.critical_difference:.2f}"
    ax.text(1, 2.2 * STEP, label, ha="left", va="bottom", fontsize=9)


def _draw_names(ax: Axes, ranking: Ranking, top: float) -> None:
    """The better half is named on the left, the other on the right, each with a line to its rank."""
    names = list(ranking.mean_ranks)
    left, right = names[: (len(names) + 1) // 2], names[(len(names) + 1) // 2 :][::-1]
    for side, group in ((1.0, left), (float(len(names)), right)):
        for place, name in enumerate(group):
            rank, height = ranking.mean_ranks[name], top - STEP * place
            ax.plot([rank, rank, side], [0, height, height], color="#555555", linewidth=0.8)
            label = f"{name} ({rank:.2f})"
            ax.text(side, height, label, ha="left" if side == 1 else "right", va="bottom", fontsize=9)
