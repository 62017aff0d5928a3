"""Figures as files for print: PNG and SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from arml.report.charts.chart import PALETTE, Bounds, Chart, Dot, Dots, Heat, Lines, Panel, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
MOST_PANELS = 3
"""Panels side by side in one figure; the page has all of them."""
PANEL = 4.2
"""Width of a panel. All widths and heights here are in inches."""
LONGEST_NAME = 3.5
"""Width at which names of curves, lines and tasks wrap."""
NAME_SIZE, LEGEND_SIZE, PANEL_SIZE, TITLE_SIZE = 10, 8, 9, 11
"""Font sizes, in points."""


def save(charts: Sequence[Chart], folder: Path) -> list[Path]:
    """Writes every chart as PNG and as SVG, named by its key."""
    folder.mkdir(parents=True, exist_ok=True)
    return [path for chart in charts for path in _save(chart, folder)]


def _save(chart: Chart, folder: Path) -> list[Path]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    figure = draw_figure(chart)
    paths = [folder / f"{chart.key}.{kind}" for kind in ("png", "svg")]
    about: dict[str, str | None] = {"Title": chart.title, "Description": chart.alt}
    # Not `savefig`, which draws everything twice; and the layout, slower than drawing, is computed once.
    FigureCanvasAgg(figure).print_png(str(paths[0]), metadata=about)  # type: ignore[no-untyped-call]
    figure.set_layout_engine("none")
    # No date: the same records give the same file.
    FigureCanvasSVG(figure).print_svg(str(paths[1]), metadata={**about, "Date": None})  # type: ignore[no-untyped-call]
    return paths


def draw_figure(chart: Chart) -> Figure:
    """The chart as a figure of matplotlib, without its global state."""
    if isinstance(chart, Lines):
        return _lines(chart)
    return _dots(chart) if isinstance(chart, Dots) else _heat(chart)


def _figure(width: float, height: float, title: str) -> Figure:
    from matplotlib.figure import Figure  # imported here: it takes a second to load, and tables do not need it

    # The layout makes room for the height of titles, but not for their width.
    wrapped = _wrap(title, width - 0.2, TITLE_SIZE)
    figure = Figure(figsize=(width, height + _height([wrapped], TITLE_SIZE)), dpi=150, layout="constrained")
    figure.suptitle(wrapped, fontsize=TITLE_SIZE)
    return figure


def _lines(chart: Lines) -> Figure:
    panels = chart.panels[:MOST_PANELS]
    names = [_curve_name(series) for series in panels[0].series] + [chart.level_title]
    shared = all([s.name for s in panel.series] == [s.name for s in panels[0].series] for panel in panels)
    legends = [names] if shared else [[_curve_name(series) for series in panel.series] for panel in panels]
    width = 0.6 + PANEL * len(panels) + sum(0.6 + _width(one, LEGEND_SIZE) for one in legends)
    figure = _figure(width, max(3.8, 0.3 + _height(names, LEGEND_SIZE)), chart.title)
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for ax, panel in zip(axes, panels, strict=True):
        _draw_panel(ax, panel, chart)
    axes[0].set_ylim(*chart.bounds.clip(axes[0].get_ylim()))
    axes[0].set_ylabel(_escape(chart.y_title))
    if shared:
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right center", fontsize=LEGEND_SIZE)
    else:
        for ax in axes:  # beside its panel, never over the curves
            ax.legend(fontsize=LEGEND_SIZE, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _draw_panel(ax: Axes, panel: Panel, chart: Lines) -> None:
    for place, series in enumerate(panel.series):
        _draw_series(ax, series, place, chart.bounds)
    if chart.level is not None:
        ax.axhline(chart.level, color="#777777", linewidth=0.8, zorder=0, label=chart.level_title)
    if chart.log_x:
        _log_axis(ax, sorted({x for series in panel.series for x in series.x}))
    else:
        ax.locator_params(axis="x", integer=True)  # no half steps, no half shots
    if chart.log_y:
        ax.set_yscale("log")
    ax.set_title(_wrap(panel.title, PANEL - 0.2, PANEL_SIZE), fontsize=PANEL_SIZE)
    ax.set_xlabel(_wrap(chart.x_title, PANEL - 0.6, NAME_SIZE))
    ax.grid(alpha=0.3)


def _log_axis(ax: Axes, ticks: Sequence[float]) -> None:
    """Puts ticks at the measured points, not at powers of ten."""
    ax.set_xscale("log")
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_xticks([], minor=True)


def _draw_series(ax: Axes, series: Series, place: int, bounds: Bounds) -> None:
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
        clip_on=bounds.clip(series.y) != list(series.y),  # a marker at 0 or 100 % is whole; what lies beyond is cut off
        label=_curve_name(series),
    )
    if series.low is not None and series.high is not None:
        low, high = bounds.clip(series.low), bounds.clip(series.high)
        ax.fill_between(series.x, low, high, color=colour, alpha=0.12, linewidth=0)


def _curve_name(series: Series) -> str:
    return _wrap(series.name, LONGEST_NAME, LEGEND_SIZE)


def _dots(chart: Dots) -> Figure:
    names = [_wrap(dot.name, LONGEST_NAME, NAME_SIZE) for dot in chart.dots]
    figure = _figure(7.5, 1.0 + 0.1 * len(names) + _height(names, NAME_SIZE), chart.title)
    ax = figure.subplots()
    for place, dot in enumerate(chart.dots):
        _draw_dot(ax, dot, place, chart.bounds)
    ax.set_xlim(*chart.bounds.clip(ax.get_xlim()))
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set_xlabel(f"{chart.x_title} (mean, 95 % interval, {chart.points}s)")
    ax.grid(axis="x", alpha=0.3)
    return figure


def _draw_dot(ax: Axes, dot: Dot, place: int, bounds: Bounds) -> None:
    arms = [[arm] for arm in dot.arms(bounds)] if dot.summary.n > 1 else None
    ax.plot(list(dot.values.values()), [place] * len(dot.values), "|", color="#777777", markersize=9, clip_on=False)
    ax.errorbar(dot.summary.mean, place, xerr=arms, fmt="o", color=PALETTE[0], capsize=3, clip_on=False)


def _heat(chart: Heat) -> Figure:
    columns, rows = ([_wrap(name, LONGEST_NAME, NAME_SIZE) for name in names] for names in (chart.columns, chart.rows))
    width = 2.0 + _width(rows, NAME_SIZE) + max(1.5, 0.45 * len(columns))
    figure = _figure(width, 0.6 + _width(columns, NAME_SIZE) + max(1.8, 0.35 * len(rows)), chart.title)
    ax = figure.subplots()
    values = [[math.nan if value is None else value for value in row] for row in chart.values]
    # Dark to light in one direction: the same order in grey and for every reader.
    image = ax.imshow(values, cmap="cividis", vmin=0, aspect="auto")
    ax.set_xticks(range(len(columns)), columns, rotation=90)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xlabel(chart.x_title)
    ax.set_ylabel(chart.y_title)
    figure.colorbar(image, label="mean final weight,\n1 = equal share")
    return figure


def _wrap(words: str, width: float, size: float) -> str:
    """Wraps words to lines of at most ``width``, escaped for matplotlib."""
    return _escape("\n".join(wrap(words, int(width / _letter_width(size)))))


def _width(names: Iterable[str], size: float) -> float:
    """Width of the longest line."""
    return max((len(line) for name in names for line in name.split("\n")), default=0) * _letter_width(size)


def _height(names: Iterable[str], size: float) -> float:
    """Height of the names one below the other, with a little space between them."""
    return sum(0.4 + 1.3 * len(name.split("\n")) for name in names) * size / 72


def _letter_width(size: float) -> float:
    """Width of a wide letter; most are narrower."""
    return 0.62 * size / 72


def _escape(words: str) -> str:
    """Escapes dollars in names: they start no formulas."""
    return words.replace("$", r"\$")
