"""Charts as data for Plotly, which draws them on the page."""

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from arml.report.charts.chart import PALETTE, Bounds, Chart, Dot, Dots, Heat, Lines, Panel, Series

Json: TypeAlias = dict[str, Any]
"""Plotly's input, in Plotly's own schema."""
DASHES = ("solid", "dash", "dot", "dashdot")
SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x", "star")
MOST_POINTS = 60
"""Most points of one seed's curve."""
MOST_SEEDS = 10
"""Most seeds that a reader can select one by one."""
ALL_SEEDS = "all seeds: mean and 95 % interval"


def views(chart: Chart) -> Json:
    """A layout and, for every choice of method and seed, the traces to draw."""
    if isinstance(chart, Lines):
        groups = [_group(panel, chart.bounds) for panel in chart.panels]
        return {"key": chart.key, "layout": _layout(chart), "groups": groups}
    traces, layout = _dots(chart) if isinstance(chart, Dots) else _heat(chart)
    return {"key": chart.key, "layout": layout, "groups": [{"name": "", "views": [{"name": "", "traces": traces}]}]}


def _group(panel: Panel, bounds: Bounds) -> Json:
    seeds = panel.by_seed[:MOST_SEEDS] if len(panel.by_seed) > 1 else ()
    choices = [
        (ALL_SEEDS if seeds else "", panel.series),
        *((name, [_thin(one) for one in series]) for name, series in seeds),
    ]
    found = [
        {"name": name, "traces": [trace for i, one in enumerate(series) for trace in _traces(one, i, bounds)]}
        for name, series in choices
    ]
    return {"name": panel.title, "views": found}


def _thin(series: Series) -> Series:
    """At most ``MOST_POINTS`` points, with the last one."""
    stride = math.ceil(len(series.x) / MOST_POINTS) or 1
    return series._replace(x=series.x[::-1][::stride][::-1], y=series.y[::-1][::stride][::-1])


def _traces(series: Series, place: int, bounds: Bounds) -> list[Json]:
    """The curve and, if it has one, the outline of its band. The page adds colours, dark or light."""
    line = {"dash": DASHES[(place + place // len(PALETTE)) % len(DASHES)], "width": 2}
    curve: Json = {
        "type": "scatter",
        "name": _escape(series.name),
        "x": _round(series.x),
        "y": _round(series.y),
        "mode": "lines+markers",
        "cliponaxis": False,
        "line": line,
        "marker": {"symbol": SYMBOLS[place % len(SYMBOLS)], "size": 6},
        "meta": {"colour": place % len(PALETTE), "tone": series.tone},
        "legendgroup": str(place),
        "hovertemplate": "%{fullData.name}: %{y:.4g} at %{x}<extra></extra>",
    }
    if series.low is None or series.high is None:
        return [curve]
    outline: Json = {
        "type": "scatter",
        "x": _round([*series.x, *reversed(series.x)]),
        "y": _round(bounds.clip([*series.high, *reversed(series.low)])),
        "fill": "toself",
        "line": {"width": 0},
        "mode": "lines",
        "meta": {"colour": place % len(PALETTE), "band": True, "tone": series.tone},
        "legendgroup": str(place),
        "showlegend": False,
        "hoverinfo": "skip",
    }
    halves = [(high - low) / 2 for low, high in zip(series.low, series.high, strict=True)]
    curve["customdata"] = _round(halves)
    curve["hovertemplate"] = "%{fullData.name}: %{y:.4g} ± %{customdata:.3g} at %{x}<extra></extra>"
    return [outline, curve]


def _layout(chart: Lines) -> Json:
    x_axis: Json = {"title": {"text": _escape(chart.x_title)}}
    if chart.log_x:
        ticks = sorted({x for panel in chart.panels for series in panel.series for x in series.x})
        x_axis |= {"type": "log", "tickvals": _round(ticks), "ticktext": [f"{tick:g}" for tick in ticks]}
    scale = {"type": "log"} if chart.log_y else {}
    y_axis = {"title": {"text": _escape(chart.y_title)}, **_clipped_axis(chart.bounds), **scale}
    layout: Json = {"xaxis": x_axis, "yaxis": y_axis, "height": 420}
    if chart.level is not None:
        layout["shapes"] = [
            {
                "type": "line",
                "xref": "paper",
                "x0": 0,
                "x1": 1,
                "y0": chart.level,
                "y1": chart.level,
                "line": {"width": 1, "dash": "dot"},
                "label": {"text": _escape(chart.level_title), "textposition": "end", "font": {"size": 11}},
            }
        ]
    return layout


def _clipped_axis(bounds: Bounds) -> Json:
    """Keeps Plotly's margins inside the range of possible values."""
    ends = {"clipmin": bounds.low, "clipmax": bounds.high}
    return {"autorangeoptions": {name: end for name, end in ends.items() if math.isfinite(end)}}


def _dots(chart: Dots) -> tuple[list[Json], Json]:
    tones = dict.fromkeys(dot.tone for dot in chart.dots)
    means = [_means([dot for dot in chart.dots if dot.tone == tone], chart.bounds, tone) for tone in tones]
    points = [(_escape(dot.name), seed, value) for dot in chart.dots for seed, value in dot.values.items()]
    seeds: Json = {
        "type": "scatter",
        "name": f"one {chart.points}",
        "x": _round([value for _, _, value in points]),
        "y": [name for name, _, _ in points],
        "mode": "markers",
        "cliponaxis": False,
        # The line is the whole symbol: without a width and a colour of its own it vanishes on a dark ground.
        "marker": {"symbol": "line-ns", "size": 7, "opacity": 0.65, "line": {"width": 1.5}},
        "meta": {"colour": 1, "tone": "plain" if "" not in tones else ""},
        "customdata": [seed for _, seed, _ in points],
        "hovertemplate": f"%{{y}}<br>{chart.points} %{{customdata}}: %{{x:.2f}} %<extra></extra>",
    }
    names = [_escape(dot.name) for dot in chart.dots]
    layout: Json = {
        "xaxis": {"title": {"text": _escape(chart.x_title)}, **_clipped_axis(chart.bounds)},
        "yaxis": {"autorange": "reversed", "type": "category", "categoryorder": "array", "categoryarray": names},
        "height": 150 + 34 * len(names),
    }
    return [seeds, *means], layout


def _means(dots: Sequence[Dot], bounds: Bounds, tone: str) -> Json:
    """The means of all dots in one colour, with their intervals."""
    below, above = zip(*(dot.arms(bounds) for dot in dots), strict=True)
    return {
        "type": "scatter",
        "name": "mean and 95 % interval",
        "x": _round([dot.summary.mean for dot in dots]),
        "y": [_escape(dot.name) for dot in dots],
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": _round(above),
            "arrayminus": _round(below),
            "thickness": 2.5,
            "width": 0,
        },
        "mode": "markers",
        "cliponaxis": False,
        "marker": {"size": 10},
        "meta": {"colour": 0, "tone": tone},
        "customdata": [[str(dot.summary), dot.summary.n] for dot in dots],
        "hovertemplate": "%{y}<br>%{customdata[0]} %, n = %{customdata[1]}<extra></extra>",
    }


def _heat(chart: Heat) -> tuple[list[Json], Json]:
    trace: Json = {
        "type": "heatmap",
        "x": [_escape(name) for name in chart.columns],
        "y": [_escape(name) for name in chart.rows],
        "z": [[None if value is None else float(f"{value:.4g}") for value in row] for row in chart.values],
        "zmin": 0,
        "colorscale": "Cividis",
        "colorbar": {"title": {"text": "weight"}},
        "hoverongaps": False,
        "hovertemplate": "main %{y}, auxiliary %{x}: %{z:.2f}<extra></extra>",
    }
    layout: Json = {
        "xaxis": {"title": {"text": _escape(chart.x_title)}, "type": "category"},
        "yaxis": {"title": {"text": _escape(chart.y_title)}, "type": "category", "autorange": "reversed"},
        "height": 220 + 26 * len(chart.rows),
    }
    return [trace], layout


def _round(values: Sequence[float]) -> list[float]:
    """Rounds to four digits: more would be invisible and make the page larger."""
    return [float(f"{value:.4g}") for value in values]


def _escape(words: str) -> str:
    """Escapes names: Plotly interprets some HTML in texts."""
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
