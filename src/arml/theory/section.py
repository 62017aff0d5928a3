"""The model of a section of the page."""

from typing import NamedTuple

from arml.report.charts.chart import Lines
from arml.report.tables.sheet import Sheet


class Section(NamedTuple):
    """One link of the chain, or one way to fail."""

    key: str
    title: str
    sentences: tuple[str, ...]
    sheets: tuple[Sheet, ...] = ()
    charts: tuple[Lines, ...] = ()
