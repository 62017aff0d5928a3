"""Figures as files for print: PNG and SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from arml.report.chart import PALETTE, Chart, Dots, Heat, Lines, Panel, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
MOST_PANELS = 3
"""Panels side by side; the page has all of them."""


def save(charts: Sequence[Chart], folder: Path) -> list[Path]:
    """Writes every chart as PNG and as SVG, named by its key."""
    folder.mkdir(parents=True, exist_ok=True)
    return [path for chart in charts for path in _saved(chart, folder)]


def _saved(chart: Chart, folder: Path) -> list[Path]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    figure = drawn(chart)
    paths = [folder / f"{chart.key}.{kind}" for kind in ("png", "svg")]
    about: dict[str, str | None] = {"Title": chart.title, "Description": chart.alt}
    # Not `savefig`, which draws everything twice; and laid out once, which takes longer than drawing.
    FigureCanvasAgg(figure).print_png(str(paths[0]), metadata=about)  # type: ignore[no-untyped-call]
    figure.set_layout_engine("none")
    # No date: the same records give the same file.
    FigureCanvasSVG(figure).print_svg(str(paths[1]), metadata={**about, "Date": None})  # type: ignore[no-untyped-call]
    return paths


def drawn(chart: Chart) -> Figure:
    """The chart as matplotlib draws it, without touching what else uses matplotlib."""
    if isinstance(chart, Lines):
        return _lines(chart)
    return _dots(chart) if isinstance(chart, Dots) else _heat(chart)


def _figure(width: float, height: float, title: str) -> Figure:
    from matplotlib.figure import Figure  # here: it takes a second to load, and tables do without

    figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
    figure.suptitle(_plain(title), fontsize=11)
    return figure


def _lines(chart: Lines) -> Figure:
    panels = chart.panels[:MOST_PANELS]
    figure = _figure(1.5 + 4.2 * len(panels), 4.0, chart.title)
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for ax, panel in zip(axes, panels, strict=True):
        _draw_panel(ax, panel, chart)
    axes[0].set_ylabel(_plain(chart.y_title))
    handles, names = axes[0].get_legend_handles_labels()
    if any([s.name for s in panel.series] != [s.name for s in panels[0].series] for panel in panels):
        for ax in axes:
            ax.legend(fontsize=7)
    else:
        figure.legend(handles, names, loc="outside right center", fontsize=8)
    return figure


def _draw_panel(ax: Axes, panel: Panel, chart: Lines) -> None:
    for place, series in enumerate(panel.series):
        _draw(ax, series, place)
    if chart.level is not None:
        ax.axhline(chart.level, color="#777777", linewidth=0.8, zorder=0, label=chart.level_title)
    if chart.log_x:
        _log_axis(ax, sorted({x for series in panel.series for x in series.x}))
    ax.set_title(_plain(panel.title), fontsize=9, wrap=True)
    ax.set_xlabel(_plain(chart.x_title))
    ax.grid(alpha=0.3)


def _log_axis(ax: Axes, ticks: Sequence[float]) -> None:
    """Marks where something was measured, not at powers of ten."""
    ax.set_xscale("log")
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_xticks([], minor=True)


def _draw(ax: Axes, series: Series, place: int) -> None:
    """Colour, marker and line style together tell curves apart, in grey as well."""
    colour, style = PALETTE[place % len(PALETTE)], STYLES[(place + place // len(PALETTE)) % len(STYLES)]
    every = max(1, len(series.x) // 10)
    ax.plot(
        series.x,
        series.y,
        color=colour,
        linestyle=style,
        marker=MARKERS[place % len(MARKERS)],
        markersize=4,
        markevery=every,
        label=_plain(series.name),
    )
    if series.low is not None and series.high is not None:
        ax.fill_between(series.x, series.low, series.high, color=colour, alpha=0.12, linewidth=0)


def _dots(chart: Dots) -> Figure:
    figure = _figure(7.5, 1.3 + 0.35 * len(chart.dots), chart.title)
    ax = figure.subplots()
    for place, dot in enumerate(chart.dots):
        half_width = dot.summary.half_width if math.isfinite(dot.summary.half_width) else None
        ax.plot(list(dot.values.values()), [place] * len(dot.values), "|", color="#777777", markersize=9)
        ax.errorbar(dot.summary.mean, place, xerr=half_width, fmt="o", color=PALETTE[0], capsize=3)
    ax.set_yticks(range(len(chart.dots)), [_plain(dot.name) for dot in chart.dots])
    ax.invert_yaxis()
    ax.set_xlabel(f"{chart.x_title} (mean, 95 % interval, seeds)")
    ax.grid(axis="x", alpha=0.3)
    return figure


def _heat(chart: Heat) -> Figure:
    figure = _figure(2.5 + 0.45 * len(chart.columns), 2.0 + 0.35 * len(chart.rows), chart.title)
    ax = figure.subplots()
    values = [[math.nan if value is None else value for value in row] for row in chart.values]
    # Dark to light in one direction: the same order in grey and for every reader.
    image = ax.imshow(values, cmap="cividis", vmin=0, aspect="auto")
    ax.set_xticks(range(len(chart.columns)), [_plain(name) for name in chart.columns], rotation=90)
    ax.set_yticks(range(len(chart.rows)), [_plain(name) for name in chart.rows])
    ax.set_xlabel(chart.x_title)
    ax.set_ylabel(chart.y_title)
    figure.colorbar(image, label="mean final weight, 1 = equal share")
    return figure


def _plain(words: str) -> str:
    """Dollars in names are no formulas."""
    return words.replace("$", r"\$")
