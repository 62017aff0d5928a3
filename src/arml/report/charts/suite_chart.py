"""The figure of the suite: what every method gains or loses in every world."""

from collections.abc import Sequence

from arml.report.charts.chart import Bounds, Dot, Dots
from arml.report.data.suite_scores import MethodScores
from arml.report.data.summary import summarise
from arml.report.titles import suite_title


def suite_chart(scores: Sequence[MethodScores]) -> Dots:
    """Points gained against the better of main task only and uniform weights: one point per world and method."""
    dots = []
    for one in scores:
        gains = {world: -regret for world, regret in one.regrets.items()}
        dots.append(Dot(suite_title(one.line), summarise([*gains.values()]), gains))
    means = "; ".join(f"{dot.name} {dot.summary}" for dot in dots)
    return Dots(
        "suite-gain",
        "Suite of known truths: gain over the better of main task only and uniform weights",
        "Points of the test error that every method gains in every world over the better of main task only and uniform "
        f"weights; less than 0 is harm. Mean over worlds with its 95 % interval: {means}.",
        "points gained",
        tuple(dots),
        Bounds(),
        points="world",
    )
