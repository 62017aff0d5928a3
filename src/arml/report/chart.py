"""A figure as plain data: files for print and the page's charts are made from it."""

from typing import NamedTuple, TypeAlias

from arml.report.summary import Summary

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C7A00")
"""Colours after Okabe and Ito, which colour-blind readers can tell apart; yellow is darker, not to be lost on white."""


class Series(NamedTuple):
    """A curve, with the band around it if it has one."""

    name: str
    x: list[float]
    y: list[float]
    low: list[float] | None = None
    high: list[float] | None = None


class Panel(NamedTuple):
    """Curves that share axes."""

    title: str
    series: tuple[Series, ...]
    by_seed: tuple[tuple[str, tuple[Series, ...]], ...] = ()
    """The same curves of one seed at a time, with its name."""


class Lines(NamedTuple):
    """Curves over steps, labels or tasks."""

    key: str
    """Names the file, and the place on the page."""
    title: str
    alt: str
    """What it shows, for those who cannot see it."""
    x_title: str
    y_title: str
    panels: tuple[Panel, ...]
    log_x: bool = False
    level: float | None = None
    """A line across."""
    level_title: str = ""


class Dot(NamedTuple):
    """A mean with its interval, and the seeds it comes from."""

    name: str
    summary: Summary
    values: dict[int, float]


class Dots(NamedTuple):
    """Means with intervals, one below the other."""

    key: str
    title: str
    alt: str
    x_title: str
    dots: tuple[Dot, ...]


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


Chart: TypeAlias = Lines | Dots | Heat
