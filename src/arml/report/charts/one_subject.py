"""Figures of one comparison: errors, weights and agreement over training."""

import re
from collections.abc import Iterable

from arml.lab.run import Line
from arml.report.charts.chart import NOT_NEGATIVE, Bounds, Chart, Dot, Dots, Lines, Panel, Series
from arml.report.data.comparison import Comparison
from arml.report.data.curves import Curve, band, of_seed, shown_tasks
from arml.report.data.summary import summarise
from arml.report.titles import ARMLS, FIXED, line_title, order, subject_title


def slug(*words: str) -> str:
    """A name that is safe in files and pages.

    >>> slug("weights", "yeast: Class1, 50 labels")
    'weights-yeast-class1-50-labels'
    """
    return re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower()).strip("-")


def of_comparison(comparison: Comparison) -> list[Chart]:
    """Errors, weights and agreement of one subject."""
    found = [errors(comparison), over_training(comparison, "weights"), over_training(comparison, "agreement")]
    return [chart for chart in found if chart is not None]


def errors(comparison: Comparison) -> Dots | None:
    """Test error of every line."""
    lines = [line for line, runs in comparison.finished.items() if runs]
    if not lines:
        return None
    title = subject_title(comparison.subject)
    found = {line: comparison.errors(line) for line in lines}
    dots = tuple(Dot(line_title(line), summarise([*by_seed.values()]), by_seed) for line, by_seed in found.items())
    bounds = Bounds(0, comparison.most_error())
    spoken = "; ".join(f"{dot.name} {dot.summary}" for dot in dots)
    return Dots(
        slug("error", title),
        f"Test error: {title}",
        f"Mean test error in % with 95 % interval over seeds{bounds.said()}, lower is better. {spoken}.",
        "test error in %",
        dots,
        bounds,
    )


def over_training(comparison: Comparison, key: str) -> Lines | None:
    """Weights or agreement of the auxiliary tasks over training, a panel for each line, ARML first."""
    lines = [line for line in comparison.finished if comparison.weights(line) and not line.variant]
    if key == "weights":
        lines = [line for line in lines if line.method not in FIXED]
    lines.sort(key=lambda line: (line.method not in ARMLS, order(line)))
    panels = [panel for panel in (panel_of(comparison, line, key) for line in lines) if panel.series]
    if not panels:
        return None
    title = subject_title(comparison.subject)
    named = {"weights": ("Weights over training", "weight", 1.0, "equal share")}
    about, y_title, level, level_title = named.get(
        key, ("Agreement of gradients over training", "⟨g_0, g_k⟩ / ⟨g_0, g_0⟩", 0.0, "no agreement")
    )
    bounds = NOT_NEGATIVE if key == "weights" else Bounds()
    return Lines(
        slug(key, title),
        f"{about}: {title}",
        f"{about}. {spoken(f'At the last recorded step of {panels[0].title}', panels[0])} {band_note(bounds)}",
        "step",
        y_title,
        tuple(panels),
        level=level,
        level_title=level_title,
        bounds=bounds,
    )


def panel_of(comparison: Comparison, line: Line, key: str) -> Panel:
    """The curves of a line's auxiliary tasks, as bands and seed by seed."""
    runs = comparison.finished[line]
    final = {task: summarise([*by_seed.values()]).mean for task, by_seed in comparison.weights(line).items()}
    curves = {task: {seed: of_seed(run, key, task) for seed, run in runs.items()} for task in shown_tasks(final)}
    mean = tuple(_band(task, by_seed.values()) for task, by_seed in curves.items())
    by_seed = tuple(
        (f"seed {seed}", tuple(Series(task, *curves[task][seed]) for task in curves if curves[task][seed].steps))
        for seed in runs
    )
    return Panel(_titled(line, len(curves), len(final)), tuple(one for one in mean if one.x), by_seed)


def _titled(line: Line, shown: int, all_of_them: int) -> str:
    less = f" ({shown} of {all_of_them} tasks: largest and smallest weights)" if shown < all_of_them else ""
    return line_title(line) + less


def _band(name: str, curves: Iterable[Curve]) -> Series:
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
    """What bands are."""
    return f"The band is the 95 % interval over seeds{bounds.said()}."


def spoken(where: str, panel: Panel) -> str:
    """What the curves of a panel come to, for those who cannot see them."""
    ends = ", ".join(f"{series.name} {series.y[-1]:.2f}" for series in panel.series if series.y)
    return f"{where}: {ends}."
