"""A table's file becomes a frame of pandas: format, separator, names of columns."""

import csv
import gzip
import warnings
import zlib
from collections.abc import Callable
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from arml.lab.data.base import DataError
from arml.lab.data.limits import check_inflated_size

# pandas is imported where it is used, so that image data sets do not need it.
if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped, unused-ignore]

SEPARATORS = {",": "','", ";": "';'", "\t": "tabs", "|": "'|'"}
"""Marks that may separate columns, and their names in messages."""
LINES_TO_JUDGE = 50
"""First lines of a text file that show its separator."""
_UNREADABLE = (OSError, EOFError, ValueError, NotImplementedError, zlib.error, csv.Error)


class TableRemark(UserWarning):
    """A line about how a table was read."""


@cache
def remark_once(path: Path, text: str) -> None:
    """Warns once per process: a comparison reads the same table for each of its runs. The cache keeps it silent."""
    del path
    warnings.warn(text, TableRemark, stacklevel=2)


class TableFile(NamedTuple):
    """A table as read from its file."""

    frame: "pd.DataFrame"
    """At least one row; the names of the columns are texts, all different, without spaces around them."""
    separator: str
    """The mark between columns; empty for a format that has none."""
    is_usual: bool = True
    """Whether that is the mark that the file's name promises."""


def read_table(path: Path) -> TableFile:
    """Reads a ``.csv``, ``.csv.gz``, ``.tsv`` or ``.parquet`` file. The first lines of a text show its separator."""
    from pandas.errors import ParserWarning  # type: ignore[import-untyped, unused-ignore]

    read = _readers()[table_suffix(path).lower()]
    if not path.is_file():
        raise DataError(f"{path}: expected a table, found no such file.")
    check_inflated_size(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ParserWarning)  # otherwise cells of a line that is too long are dropped
            table = read(path)
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: expected text in UTF-8, found another encoding; save it as UTF-8.") from error
    except (*_UNREADABLE, ParserWarning) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path}: expected a table, found an empty, damaged or different file ({reason}).") from error
    return table._replace(frame=_check_frame(path, table.frame))


def table_suffix(path: Path) -> str:
    """The end of the file's name that says its format, as it is written there."""
    known = _readers()
    for suffix in known:
        if path.name.lower().endswith(suffix):
            return path.name[-len(suffix) :]
    raise DataError(f"{path}: expected a table named {', '.join(f'*{suffix}' for suffix in known)}.")


def _readers() -> dict[str, Callable[[Path], TableFile]]:
    csv_file, tsv_file = (partial(_read_text, usual=separator) for separator in (",", "\t"))
    return {".csv": csv_file, ".csv.gz": csv_file, ".tsv": tsv_file, ".parquet": _read_parquet}


def _read_text(path: Path, usual: str) -> TableFile:
    """The table with the column names of the file, including a name that occurs twice."""
    import pandas as pd

    separator = _find_separator(path, usual)
    # Without index_col=False, one comma too many at the end of every line would shift all columns by one.
    read = partial(pd.read_csv, path, sep=separator, index_col=False, skipinitialspace=True)
    names = read(header=None, nrows=1, dtype=str, na_filter=False).iloc[0].tolist()
    frame = read(low_memory=False)
    # pandas renames a second column "y" to "y.1", and it would become a feature under that name.
    frame.columns = [name.strip() or ours for name, ours in zip(names, frame.columns, strict=True)]
    return TableFile(frame, separator, is_usual=separator == usual)


def _find_separator(path: Path, usual: str) -> str:
    """The mark that divides all first lines into the same number of cells, as many as possible; else ``usual``."""
    with _open(path) as file:
        lines = [line for line in islice(file, LINES_TO_JUDGE) if line.strip()]

    def judge(mark: str) -> tuple[bool, int, bool]:
        widths = [len(row) for row in csv.reader(lines, delimiter=mark, skipinitialspace=True)] or [0]
        return widths[0] > 1 and len(set(widths)) == 1, widths[0], mark == usual

    best = max(SEPARATORS, key=judge)
    return best if judge(best)[1] > 1 else usual


def _open(path: Path) -> IO[str]:
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8", newline="")
    return path.open(encoding="utf-8", newline="")


def _read_parquet(path: Path) -> TableFile:
    """The table; a named index becomes a column, since somebody gave it that name."""
    import pandas as pd

    frame = pd.read_parquet(path)
    return TableFile(frame if set(frame.index.names) == {None} else frame.reset_index(allow_duplicates=True), "")


def _check_frame(path: Path, frame: "pd.DataFrame") -> "pd.DataFrame":
    if not len(frame):
        raise DataError(
            f"{path}: expected a table, found no rows below the names {', '.join(map(str, frame.columns))}."
        )
    frame.columns = [str(name).strip() for name in frame.columns]
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()]
        raise DataError(f"{path}: expected different names of columns, found {', '.join(twice)} more than once.")
    return frame.reset_index(drop=True)
