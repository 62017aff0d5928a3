"""Numbers as curves of charts."""

from collections.abc import Iterable, Mapping, Sequence

from arml.report.charts.chart import Series
from arml.report.data.summary import Summary

SMALLEST = 1e-4
"""Lowest end of a band: logarithmic axes have no 0."""
ENOUGH = 5
"""Values that a band needs."""


def line(name: str, x: Iterable[float], y: Iterable[float]) -> Series:
    """A curve without a band."""
    return Series(name, [float(value) for value in x], [float(value) for value in y])


def mean_lines(x: Sequence[float], rows: Mapping[str, Sequence[Summary]]) -> list[Series]:
    """Curves of means."""
    return [line(name, x, [one.mean for one in row]) for name, row in rows.items()]


def bands(x: Sequence[float], rows: Mapping[str, Sequence[Summary]]) -> list[Series]:
    """Curves with 95 % intervals, cut off above 0 for logarithmic axes; none where few values make them huge."""
    return [
        one._replace(low=[max(SMALLEST, value.low) for value in row], high=[value.high for value in row])
        if min(value.n for value in row) >= ENOUGH
        else one
        for one, row in zip(mean_lines(x, rows), rows.values(), strict=True)
    ]


def describe_last(curves: Sequence[Series]) -> str:
    """The last value of every curve in words."""
    return f"At {curves[0].x[-1]:g}: " + ", ".join(f"{one.name} {one.y[-1]:.3g}" for one in curves) + "."
