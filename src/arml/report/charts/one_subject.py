"""Figures of one comparison: results, weights and agreement over training."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from arml.lab.run import Line
from arml.report.charts.chart import NOT_NEGATIVE, Bounds, Chart, Dot, Dots, Lines, Panel, Series
from arml.report.data.comparison import Comparison
from arml.report.data.curves import Curve, band, choose_tasks, seed_curve
from arml.report.data.summary import summarise
from arml.report.titles import ARMLS, FIXED, line_title, order, subject_title

MOST_WEIGHT = 20.0
"""An axis of weights ends here if a weight is larger; the tables have the number."""


def slug(*words: str) -> str:
    """A name that is safe in file names and pages.

    >>> slug("weights", "yeast: Class1, 50 labels")
    'weights-yeast-class1-50-labels'
    """
    return re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower()).strip("-")


def subject_charts(comparison: Comparison) -> list[Chart]:
    """Charts of results, weights and agreement for one subject."""
    found = [result_chart(comparison), training_chart(comparison, "weights"), training_chart(comparison, "agreement")]
    return [chart for chart in found if chart is not None]


def result_chart(comparison: Comparison) -> Dots | None:
    """Test error of every line, or the measure that chose the networks."""
    lines = [line for line, runs in comparison.finished.items() if runs]
    if not lines:
        return None
    title, measure = subject_title(comparison.subject), comparison.measure()
    found = {line: comparison.results(line, measure.name) for line in lines}
    dots = tuple(Dot(line_title(line), summarise([*by_seed.values()]), by_seed) for line, by_seed in found.items())
    bounds = Bounds(0, comparison.limit())
    means = "; ".join(f"{dot.name} {dot.summary}" for dot in dots)
    return Dots(
        slug(measure.title(), title),
        f"Test {measure.title()}: {title}",
        f"Mean test {measure.title()} in % with its 95 % interval over seeds{bounds.describe()}; "
        f"{measure.better()} is better. {means}.",
        f"test {measure.title()} in %",
        dots,
        bounds,
        caption=f"Mean over seeds with its 95 % interval{bounds.describe()}; ticks are single seeds.",
    )


class Curves(NamedTuple):
    """Which recorded curves a chart shows, and how."""

    name: str
    key: str
    """What the records call it."""
    title: str
    y_title: str
    level: float
    level_title: str
    bounds: Bounds


WEIGHTS = Curves("weights", "weights", "Weights over training", "weight", 1.0, "equal share", NOT_NEGATIVE)
COSINE = Curves(
    "agreement",
    "cosine",
    "Agreement of gradients over training",
    "cosine with the main gradient",
    0.0,
    "no agreement",
    Bounds(-1, 1),
)
RATIO = COSINE._replace(key="agreement", y_title="⟨g_0, g_k⟩ / ⟨g_0, g_0⟩", bounds=Bounds(-3, 3))
"""Records without cosines have this ratio. It has no limits, so the axis needs some."""


def training_chart(comparison: Comparison, name: str) -> Lines | None:
    """Weights or agreement of the auxiliary tasks over training, one panel per line, judged methods first."""
    lines = [line for line in comparison.finished if comparison.weights(line) and not line.variant]
    if name == "weights":
        lines = [line for line in lines if line.method not in FIXED]
    lines.sort(key=_judged_first)
    for curves in (WEIGHTS,) if name == "weights" else (COSINE, RATIO):
        panels = [panel for panel in (training_panel(comparison, line, curves.key) for line in lines) if panel.series]
        if panels:
            return _training_chart(comparison, curves, panels)
    return None


def _judged_first(line: Line) -> tuple[int, tuple[int, int, str]]:
    return (ARMLS.index(line.method) if line.method in ARMLS else len(ARMLS)), order(line)


def _training_chart(comparison: Comparison, curves: Curves, panels: Sequence[Panel]) -> Lines:
    title = subject_title(comparison.subject)
    bounds = weight_bounds(panels) if curves is WEIGHTS else curves.bounds
    ends = describe_ends(f"At the last recorded step of {panels[0].title}", panels[0])
    return Lines(
        slug(curves.name, title),
        f"{curves.title}: {title}",
        f"{curves.title}. {ends} {band_note(bounds)}",
        "step",
        curves.y_title,
        tuple(panels),
        level=curves.level,
        level_title=curves.level_title,
        bounds=bounds,
        caption=band_note(bounds),
    )


def weight_bounds(panels: Sequence[Panel]) -> Bounds:
    """Weights are not negative; a method whose weights explode must not flatten all other curves."""
    highest = max((value for panel in panels for series in panel.series for value in series.y), default=0.0)
    return Bounds(0, MOST_WEIGHT) if highest > MOST_WEIGHT else NOT_NEGATIVE


def training_panel(comparison: Comparison, line: Line, key: str) -> Panel:
    """A line's curves, one for each auxiliary task: as bands, and seed by seed."""
    runs = comparison.finished[line]
    final = {task: summarise([*by_seed.values()]).mean for task, by_seed in comparison.weights(line).items()}
    curves = {task: {seed: seed_curve(run, key, task) for seed, run in runs.items()} for task in choose_tasks(final)}
    mean = tuple(_band_series(task, by_seed.values()) for task, by_seed in curves.items())
    by_seed = tuple(
        (f"seed {seed}", tuple(Series(task, *curves[task][seed]) for task in curves if curves[task][seed].steps))
        for seed in runs
    )
    return Panel(_panel_title(line, len(curves), len(final)), tuple(one for one in mean if one.x), by_seed)


def _panel_title(line: Line, num_drawn: int, num_tasks: int) -> str:
    choice = f" ({num_drawn} of {num_tasks} tasks: largest and smallest weights)" if num_drawn < num_tasks else ""
    return line_title(line) + choice


def _band_series(name: str, curves: Iterable[Curve]) -> Series:
    steps, summaries = band(list(curves))
    with_band = bool(summaries) and summaries[0].n > 1
    return Series(
        name,
        steps,
        [summary.mean for summary in summaries],
        [summary.low for summary in summaries] if with_band else None,
        [summary.high for summary in summaries] if with_band else None,
    )


def band_note(bounds: Bounds) -> str:
    """A note on what the bands are."""
    return f"The band is the 95 % interval over seeds{bounds.describe()}."


def describe_ends(where: str, panel: Panel) -> str:
    """The last value of each curve in a panel, for readers who cannot see it."""
    ends = ", ".join(f"{series.name} {series.y[-1]:.3g}" for series in panel.series if series.y)
    return f"{where}: {ends}."
