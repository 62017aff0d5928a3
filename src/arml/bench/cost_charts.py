"""What was measured, as figures."""

from dataclasses import asdict

from arml.bench.contenders import FIXED
from arml.bench.result import KindFacts, Result
from arml.report.charts.chart import Lines, Panel, Series
from arml.report.charts.over_subjects import cost_chart
from arml.report.data.records import cost
from arml.report.output.matplotlib_figures import MOST_PANELS


def charts(result: Result) -> list[Lines]:
    """Time and memory against K, a panel for each kind, as many in a figure as files have room for."""
    if not result.timings:
        return []
    return [*_split(cost_chart([cost(asdict(row)) for row in result.timings])), *_split(memory_chart(result))]


def memory_chart(result: Result) -> Lines:
    """Memory beyond a step with fixed weights, in units of the parameters."""
    panels = [Panel(facts.name, _curves(result, facts)) for facts in result.kinds]
    return Lines(
        "memory",
        "Extra memory of an update against the number of auxiliary tasks",
        "Peak memory of a training step that updates the weights beyond that of the same step with fixed weights, in "
        "units of the shared parameters; the numbers are in the table.",
        "auxiliary tasks K",
        "extra memory / parameters",
        tuple(panel for panel in panels if panel.series),
        log_x=True,
        level=0.0,
        level_title=FIXED,
    )


def _curves(result: Result, facts: KindFacts) -> tuple[Series, ...]:
    measured = [row for row in result.timings if row.kind == facts.name and row.extra_bytes is not None]
    names = [name for name in dict.fromkeys(row.name for row in measured) if name != FIXED]
    grouped = {name: [row for row in measured if row.name == name] for name in names}
    return tuple(
        Series(name, [row.num_aux for row in rows], [(row.extra_bytes or 0) / 4 / facts.parameters for row in rows])
        for name, rows in grouped.items()
    )


def _split(chart: Lines) -> list[Lines]:
    """Figures that are drawn whole: the first keeps its name, the others are numbered."""
    parts = [chart.panels[i : i + MOST_PANELS] for i in range(0, len(chart.panels), MOST_PANELS)]
    return [
        chart._replace(key=chart.key if number == 1 else f"{chart.key}-{number}", panels=panels)
        for number, panels in enumerate(parts, start=1)
    ]
