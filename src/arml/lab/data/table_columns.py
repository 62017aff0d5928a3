"""The cells of a column in a plain type: numbers, text or dates, however they are written."""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped, unused-ignore]

Column: TypeAlias = "np.ndarray[Any, Any]"
"""One cell per row. Numbers: float64 with NaN; text, true and false: str with ``None``; dates: datetime64 with NaT."""
Remark: TypeAlias = Callable[[str], None]
"""Receives a line about how columns were read."""

MISSING = ("?", "-", "--", ".", "n/k", "unknown", "missing")
"""Texts that mean a missing number if they stand among numbers, beside those that pandas knows."""
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal", "empty")
_TEXTS = ("string", "boolean", "categorical")
_DATES = ("datetime64", "datetime", "date", "period")
_DURATIONS = ("timedelta64", "timedelta")
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?")
_OTHER_DATE = re.compile(r"(\d{1,2})([./])(\d{1,2})[./]\d{4}")
_POINTS = re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?([eE][+-]?\d+)?")
_COMMAS = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?([eE][+-]?\d+)?")
_AROUND_NUMBERS = re.compile(r"[\s\u00a0\u202f$€£%]")


MOST_NAMES = 5
"""Columns that a remark names one by one."""


class Reading(NamedTuple):
    """A column whose cells are not taken as they are written."""

    column: str
    example: str
    """A cell, and what it is read as."""
    marks: tuple[str, ...] = ()
    """Texts that are read as missing numbers; none if it is about numbers themselves."""


def describe_readings(readings: Sequence[Reading]) -> list[str]:
    """A line for all columns with numbers in an unusual form, and one for each group of marks.

    >>> describe_readings([Reading("a", "'1,5' is read as 1.5"), Reading("b", "'2,5' is read as 2.5")])
    ["Columns 'a', 'b' hold numbers: '1,5' is read as 1.5."]
    """
    groups: dict[tuple[str, ...], list[Reading]] = {}
    for one in readings:
        groups.setdefault(one.marks, []).append(one)
    return [
        f"{name_columns([one.column for one in group])} hold{'s' if len(group) == 1 else ''} numbers: "
        f"{group[0].example}."
        for group in groups.values()
    ]


def name_columns(names: Sequence[str]) -> str:
    """``Column 'a'``, ``Columns 'a', 'b'``, or the first few and how many more there are."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"Column{'s' if len(names) > 1 else ''} {', '.join(map(repr, names[:MOST_NAMES]))}{more}"


def is_plain(column: "pd.Series") -> bool:
    """Whether the cells are numbers, text, true and false, or dates."""
    return _kind(column) in (*_NUMBERS, *_TEXTS, *_DATES, *_DURATIONS)


def plain_cells(column: "pd.Series", note: Callable[[Reading], None], *, separator: str = "") -> Column:
    """The cells of a column in a plain type, whatever types pandas has for them.

    Args:
        column: As pandas read it.
        note: Receives what is read in another way than it is written.
        separator: The mark between columns in the file. If it is a comma, one inside a number separates thousands;
            else it is a decimal comma, unless that is impossible.
    """
    kind = _kind(column)
    if kind in _NUMBERS:
        return _check_finite(column.name, column.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind in _DURATIONS:
        return column.dt.total_seconds().to_numpy(dtype=np.float64)  # type: ignore[no-any-return]
    if kind in _DATES:
        return _to_dates(column.dt.to_timestamp() if kind == "period" else column)
    if kind not in _TEXTS:
        raise ValueError(
            f"Column {column.name!r} should hold numbers, text, or true and false. Found: {kind}. Use other columns; "
            "name the features that you want with --features."
        )
    missing = column.isna()
    cells = [None if gap else str(cell).strip() or None for cell, gap in zip(column, missing, strict=True)]
    if kind != "string":
        return np.array(cells, dtype=object)
    return _read_texts(str(column.name), cells, note, english=separator == ",")


def _read_texts(name: str, cells: list[str | None], note: Callable[[Reading], None], *, english: bool) -> Column:
    """Texts, unless all of them are dates, or numbers written in a way that pandas does not read."""
    present = sorted({cell for cell in cells if cell is not None})
    date_format = _date_format(present)
    if date_format:
        return _to_dates(cells, date_format)
    numbers = _find_numbers(name, present, note, english=english)
    if numbers is None:
        return np.array(cells, dtype=object)
    return _check_finite(name, np.array([np.nan if cell is None else numbers[cell] for cell in cells]))


def _date_format(texts: Sequence[str]) -> str:
    """The format of the dates in ``texts``; empty if they are none. 3/4/2020 is in March unless others rule it out."""
    if not texts:
        return ""
    if all(map(_ISO_DATE.fullmatch, texts)):
        return "ISO8601"
    found = [match for match in map(_OTHER_DATE.fullmatch, texts) if match]
    if len(found) < len(texts) or len({match.group(2) for match in found}) > 1:
        return ""
    mark = found[0].group(2)
    day_first = mark == "." or any(int(match.group(1)) > 12 for match in found)
    return f"%d{mark}%m{mark}%Y" if day_first else f"%m{mark}%d{mark}%Y"


def _to_dates(cells: Any, date_format: str | None = None) -> Column:
    import pandas as pd

    dates = pd.to_datetime(pd.Series(cells), format=date_format, utc=True, errors="coerce")
    return dates.dt.tz_localize(None).to_numpy("datetime64[s]")  # type: ignore[no-any-return]


def _find_numbers(
    name: str, texts: Sequence[str], note: Callable[[Reading], None], *, english: bool
) -> dict[str, float] | None:
    """The number that each text means, NaN for a mark of a missing one; ``None`` if the column holds text.

    Refuses numbers mixed with a few other texts, which would turn every number into a class.
    """
    marks = [text for text in texts if text.lower() in MISSING]
    bare = {text: _AROUND_NUMBERS.sub("", text) for text in texts if text not in marks}
    found = _read_numbers(list(bare.values()), english=english)
    odd = [text for text, number in zip(bare, found, strict=True) if number != number]
    if odd and len(odd) <= len(texts) / 2:
        raise ValueError(
            f"Column {name!r} holds numbers and also text such as {odd[0]!r}. Leave such cells empty if the number is "
            "missing. If all of them are names, write a letter before each number."
        )
    if odd or not bare or (not marks and list(bare) == list(bare.values()) and _are_plain(bare)):
        return None
    example = next((text for text in bare if not _are_plain([text])), "")
    if example:
        number = found[list(bare).index(example)]
        note(Reading(name, f"{example!r} is read as {number:.12g}"))
    if marks:
        note(Reading(name, f"{', '.join(map(repr, marks))} is read as missing", tuple(marks)))
    return dict(zip(bare, found, strict=True)) | dict.fromkeys(marks, np.nan)


def _are_plain(texts: Any) -> bool:
    """Whether Python reads all ``texts`` as numbers."""
    import pandas as pd

    return not pd.to_numeric(pd.Series(list(texts), dtype=object), errors="coerce").isna().any()


def _read_numbers(texts: list[str], *, english: bool) -> list[float]:
    """The numbers in ``texts``, NaN for those that are none; one convention for the marks in all of them."""
    import pandas as pd

    def read(pattern: re.Pattern[str], thousands: str, decimal: str) -> Any:
        bare = [text.replace(thousands, "").replace(decimal, ".") if pattern.fullmatch(text) else "" for text in texts]
        return pd.to_numeric(pd.Series(bare, dtype=object), errors="coerce").to_numpy(dtype=np.float64)

    conventions = [read(_POINTS, ",", "."), read(_COMMAS, ".", ",")]
    usual, other = conventions if english else reversed(conventions)
    best = other if np.isnan(other).sum() < np.isnan(usual).sum() else usual
    return best.tolist()  # type: ignore[no-any-return]


def _kind(column: "pd.Series") -> str:
    import pandas as pd

    return str(pd.api.types.infer_dtype(column, skipna=True))


def _check_finite(name: str, numbers: Column) -> Column:
    if (np.abs(numbers) > np.finfo(np.float32).max).any():
        raise ValueError(
            f"Column {name!r} holds numbers that are infinite, or too large for 32 bits. Leave them empty."
        )
    return numbers


def is_text(column: Column) -> bool:
    """Whether the column holds text."""
    return bool(column.dtype.kind == "O")


def is_date(column: Column) -> bool:
    """Whether the column holds dates."""
    return bool(column.dtype.kind == "M")


def distinct_values(column: Column) -> list[Any]:
    """The values in ascending order, each once, without missing ones."""
    return sorted({cell for cell in column.tolist() if cell is not None and cell == cell})  # NaN is not equal to itself
