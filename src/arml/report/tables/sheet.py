"""A table as plain data: the source for the terminal, Markdown, LaTeX and the page."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from arml.report.data.summary import Summary


class Cell(NamedTuple):
    """One cell of a table."""

    text: str
    value: float | None = None
    """The number to sort by; ``None`` for words."""
    strong: bool = False


class Sheet(NamedTuple):
    """A table with its title above and notes below."""

    title: str
    headings: tuple[str, ...]
    """Headings of the columns; the first column names the rows."""
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    brief: bool = True
    """Whether the terminal shows it, too; tables that repeat the sentences are not brief."""
    wide: tuple[str, ...] = ()
    """Headings of columns that only wide formats show: the page, Markdown and wide terminals."""

    def narrow(self) -> "Sheet":
        """The table without its wide columns, for 80 letters or a column of print.

        >>> Sheet("", ("line", "error", "weights"), (), wide=("weights",)).narrow().headings
        ('line', 'error')
        """
        kept = [place for place, heading in enumerate(self.headings) if heading not in self.wide]
        rows = tuple(tuple(row[place] for place in kept) for row in self.rows)
        return self._replace(headings=tuple(self.headings[place] for place in kept), rows=rows, wide=())

    def is_text(self, column: int) -> bool:
        """Whether a column has words rather than numbers: no cell has a value."""
        return column == 0 or all(row[column].value is None for row in self.rows)


def text(words: str) -> Cell:
    """A cell with words."""
    return Cell(words)


def number(summary: Summary | None, *, strong: bool = False, digits: int = 2) -> Cell:
    """A mean with its interval; empty if there is none."""
    return Cell("") if summary is None else Cell(summary.format(digits), _finite(summary.mean), strong)


def format_weight(weight: float) -> str:
    """About three digits: enough for a weight, whose equal share is 1.

    >>> format_weight(0.7602), format_weight(12.345), format_weight(519626.99)
    ('0.76', '12.3', '> 1000')
    """
    if abs(weight) > 1000:
        return "> 1000"
    return f"{weight:.{2 if abs(weight) < 10 else 1 if abs(weight) < 100 else 0}f}"


def weight_cell(summary: Summary | None) -> Cell:
    """A final weight with its interval; empty if there is none."""
    if summary is None:
        return Cell("")
    interval = f" ± {format_weight(summary.half_width)}" if summary.n > 1 else ""
    return Cell(format_weight(summary.mean) + interval, _finite(summary.mean))


def difference(summary: Summary | None) -> Cell:
    """A paired difference with its sign and interval, marked where the interval excludes 0.

    >>> difference(Summary(-1.5, 0.5, 3)).text
    '-1.50 ± 0.50*'
    """
    if summary is None:
        return Cell("")
    interval = f" ± {summary.half_width:.2f}" if summary.n > 1 else ""
    signed = f"{summary.mean:+.2f}{interval}" + ("*" if summary.excludes_zero() else "")
    return Cell(signed, _finite(summary.mean))


def count(n: int, remarks: Sequence[str] = ()) -> Cell:
    """A number of runs, with remarks in brackets."""
    return Cell(f"{n}" + (f" ({', '.join(remarks)})" if remarks else ""), n)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
