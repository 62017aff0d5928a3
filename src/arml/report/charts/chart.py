"""A figure as plain data: the source for files for print and for the charts on the page."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from arml.report.data.summary import Summary

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C7A00")
"""Colours after Okabe and Ito, which colour-blind readers can tell apart; yellow is darker, to stand out on white."""


TONES = ("good", "bad", "plain", "open")
"""Colours with a meaning on the page: helps or is recommended; drop it; makes no difference; cannot tell yet."""


class Bounds(NamedTuple):
    """The range of possible values: neither Student's interval nor an axis knows it."""

    low: float = -math.inf
    high: float = math.inf

    def clip(self, values: Sequence[float]) -> list[float]:
        """The nearest values inside.

        >>> Bounds(0, 100).clip([-20, 50, 130])
        [0, 50, 100]
        """
        return [min(max(value, self.low), self.high) for value in values]

    def describe(self) -> str:
        """A phrase for captions, lest readers take the end of a band for the end of its interval.

        >>> Bounds(0, 100).describe(), Bounds(0).describe(), Bounds().describe()
        (', cut off at 0 and 100', ', cut off at 0', '')
        """
        ends = [f"{end:g}" for end in self if math.isfinite(end)]
        return f", cut off at {' and '.join(ends)}" if ends else ""


NOT_NEGATIVE = Bounds(0)


class Series(NamedTuple):
    """A curve, with the band around it if it has one."""

    name: str
    x: list[float]
    y: list[float]
    low: list[float] | None = None
    high: list[float] | None = None
    tone: str = ""
    """The meaning of its colour, one of ``TONES``; empty: the next colour of the palette."""


class Panel(NamedTuple):
    """Curves that share axes."""

    title: str
    series: tuple[Series, ...]
    by_seed: tuple[tuple[str, tuple[Series, ...]], ...] = ()
    """The same curves for one seed at a time, each with its name."""


class Lines(NamedTuple):
    """Curves over steps, labels or tasks."""

    key: str
    """Name of the file, and of the place on the page."""
    title: str
    alt: str
    """Description for readers who cannot see it."""
    x_title: str
    y_title: str
    panels: tuple[Panel, ...]
    log_x: bool = False
    level: float | None = None
    """Height of a horizontal line."""
    level_title: str = ""
    bounds: Bounds = Bounds()
    """Bounds of y."""
    log_y: bool = False
    caption: str = ""
    """What the reader sees below it; empty: the description."""


class Dot(NamedTuple):
    """A mean with its interval, and the seeds or worlds it comes from."""

    name: str
    summary: Summary
    values: Mapping[int, float] | Mapping[str, float]
    tone: str = ""

    def arms(self, bounds: Bounds) -> tuple[float, float]:
        """How far the interval goes below and above the mean inside ``bounds``; 0 with one seed.

        >>> Dot("", Summary(90.0, 20.0, 2), {}).arms(Bounds(0, 100))
        (20.0, 10.0)
        """
        if self.summary.n < 2:
            return 0.0, 0.0
        low, high = bounds.clip([self.summary.low, self.summary.high])
        return self.summary.mean - low, high - self.summary.mean


class Dots(NamedTuple):
    """Means with intervals, one below the other."""

    key: str
    title: str
    alt: str
    x_title: str
    dots: tuple[Dot, ...]
    bounds: Bounds
    """Bounds of x."""
    points: str = "seed"
    """What every mean is over."""
    caption: str = ""


class Heat(NamedTuple):
    """A matrix in colours."""

    key: str
    title: str
    alt: str
    x_title: str
    y_title: str
    columns: list[str]
    rows: list[str]
    values: list[list[float | None]]
    caption: str = ""


Chart: TypeAlias = Lines | Dots | Heat
