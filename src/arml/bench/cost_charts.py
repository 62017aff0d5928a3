"""A result as figures."""

from collections.abc import Sequence
from dataclasses import asdict

from arml.bench.contenders import FIXED
from arml.bench.result import Cost, KindFacts, Result, relative_cost
from arml.report.charts.chart import Lines, Panel, Series
from arml.report.charts.one_subject import describe_ends
from arml.report.output.matplotlib_figures import MOST_PANELS


def charts(result: Result) -> list[Lines]:
    """Time and memory against K, one panel per kind of network, in figures with no more panels than files can show."""
    if not result.timings:
        return []
    costs = [relative_cost(asdict(timing)) for timing in result.timings]
    return [*_split(cost_chart(costs)), *_split(memory_chart(result))]


def cost_chart(costs: Sequence[Cost]) -> Lines:
    """Cost of a step that updates the weights against the number of auxiliary tasks, one panel per kind of network."""
    panels = tuple(_cost_panel(kind, costs) for kind in dict.fromkeys(cost.kind for cost in costs))
    ends = " ".join(
        describe_ends(f"At the largest K{', ' + panel.title if panel.title else ''}", panel) for panel in panels
    )
    return Lines(
        "cost",
        "Cost of an update against the number of auxiliary tasks",
        "Time of a training step that updates the weights; 1 is the same step with fixed weights. The band spans the "
        f"quartiles. {ends}",
        "auxiliary tasks K",
        "time, fixed weights = 1",
        panels,
        log_x=True,
        log_y=True,
        level=1.0,
        level_title=FIXED,
    )


def _cost_panel(kind: str, costs: Sequence[Cost]) -> Panel:
    of_kind = sorted((cost for cost in costs if cost.kind == kind), key=lambda cost: cost.num_aux)
    names = dict.fromkeys(cost.name for cost in costs if cost.kind == kind)
    grouped = {name: [cost for cost in of_kind if cost.name == name] for name in names}
    return Panel(kind, tuple(_cost_curve(name, members) for name, members in grouped.items()))


def _cost_curve(name: str, members: Sequence[Cost]) -> Series:
    x, y, low, high = (list(column) for column in zip(*(cost[1:5] for cost in members), strict=True))
    return Series(name, x, y, low, high)


def memory_chart(result: Result) -> Lines:
    """Memory beyond a step with fixed weights, in units of the parameters."""
    panels = [Panel(facts.name, _memory_curves(result, facts)) for facts in result.kinds]
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


def _memory_curves(result: Result, facts: KindFacts) -> tuple[Series, ...]:
    measured = [one for one in result.timings if one.kind == facts.name and one.extra_bytes is not None]
    names = [name for name in dict.fromkeys(one.name for one in measured) if name != FIXED]
    grouped = {name: [one for one in measured if one.name == name] for name in names}
    return tuple(
        Series(name, [one.num_aux for one in costs], [(one.extra_bytes or 0) / 4 / facts.parameters for one in costs])
        for name, costs in grouped.items()
    )


def _split(chart: Lines) -> list[Lines]:
    """Figures with no more panels than a file can show: the first keeps its key, the others are numbered."""
    parts = [chart.panels[i : i + MOST_PANELS] for i in range(0, len(chart.panels), MOST_PANELS)]
    return [
        chart._replace(key=chart.key if number == 1 else f"{chart.key}-{number}", panels=panels)
        for number, panels in enumerate(parts, start=1)
    ]
