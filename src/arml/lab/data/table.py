"""Any table in a CSV or Parquet file: some columns are targets, others are features."""

import re
import warnings
import zlib
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from arml.lab.data.base import DataError
from arml.lab.data.targets import Examples, Target

# pandas and scikit-learn are imported where they are used, so that images do not need them.
if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped, unused-ignore]
    from sklearn.preprocessing import StandardScaler

MOST_CLASSES = 20
"""Whole numbers with more different values than this are a quantity, not classes."""
MOST_TEXTS = 1000
"""A column with more different texts than this looks like an identifier."""
ROUNDING = 1e-4
"""Standard deviations by which 32 bits may change a number; beyond, it keeps 64."""

Column: TypeAlias = "np.ndarray[Any, Any]"
"""One cell a row. Numbers: float64 with NaN; text, true and false: str with ``None``; dates: datetime64."""

_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?")
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal", "empty")
_TEXTS = ("string", "boolean", "categorical")
_DATES = ("datetime64", "datetime", "date", "period", "timedelta64", "timedelta", "time")
_SEPARATORS = {",": "commas", ";": "';'", "\t": "tabs"}
_UNREADABLE = (OSError, EOFError, ValueError, NotImplementedError, zlib.error)


def load(path: Path, *, main: str, aux: Sequence[str], features: Sequence[str] = ()) -> Examples:
    """Reads a ``.csv``, ``.csv.gz``, ``.tsv`` or ``.parquet`` file; the name of the examples is the file's.

    What is in a column of targets decides what is asked about it:

    - text, or true and false: classes, sorted by name
    - numbers with exactly two different values: two classes, the smaller value first
    - whole numbers with 3 to 20 different values: classes in the order of the numbers
    - other numbers: a number, as it is in the file

    Spaces around names of columns and around text do not count. Empty cells, and those that pandas takes for missing
    (``NaN``, ``NA``, ``None``, ``null``), are missing labels. Missing numbers among the features become the column's
    mean. Numbers are standardised; text, true and false become one column of 0 and 1 for every value, a missing one
    among them, and stay 0 for values that are new. All of this looks at the training rows only. Numbers come first in
    the inputs, then the rest, both in the order of the features.

    Args:
        path: The file.
        main: The main task's column. It may have few labels.
        aux: The auxiliary tasks' columns.
        features: Columns to predict from. If none is named: all others. Then columns that are of no use (one value
            only, dates, another text in every row, no name, neither numbers nor text) are left out. A warning says
            so, once in a process.
    """
    frame = _read(path)
    _check_names(list(frame.columns), main, aux, features)
    targets = {name: target_of(name, _plain(frame[name])) for name in (main, *aux)}
    named = {name: _plain(frame[name]) for name in features}
    chosen = _checked(named or _useful(path, frame.drop(columns=list(targets))))
    if not chosen:
        raise ValueError(f"{path}: no column is left to predict from beside the targets {', '.join(targets)}.")
    return Examples(path.name.removesuffix(_suffix(path)), targets, partial(_inputs, chosen))


def _readers() -> dict[str, Callable[[Path], "pd.DataFrame"]]:
    csv, tsv = (partial(_read_text, separator=separator) for separator in (",", "\t"))
    return {".csv": csv, ".csv.gz": csv, ".tsv": tsv, ".parquet": _read_parquet}


def _read_text(path: Path, separator: str) -> "pd.DataFrame":
    """The table under the names that are in the file, the same one twice if it is there twice."""
    import pandas as pd

    # Without index_col=False, one comma too many at the end of every line would shift all columns by one.
    read = partial(pd.read_csv, path, sep=separator, index_col=False, skipinitialspace=True)
    names = read(header=None, nrows=1, dtype=str, na_filter=False).iloc[0].tolist()
    _check_separator(path, names, separator)
    frame = read(low_memory=False)
    # pandas calls a second column "y" by the name "y.1", under which it would become a feature.
    frame.columns = [name.strip() or ours for name, ours in zip(names, frame.columns, strict=True)]
    return frame


def _check_separator(path: Path, names: list[str], separator: str) -> None:
    others = [word for mark, word in _SEPARATORS.items() if mark != separator and mark in names[0]]
    if len(names) == 1 and others:
        raise DataError(
            f"{path}: expected columns separated by {_SEPARATORS[separator]}, found a single one that looks separated "
            f"by {others[0]}; save it with commas as .csv, or with tabs as .tsv."
        )


def _read_parquet(path: Path) -> "pd.DataFrame":
    """The table, with an index that has a name as a column: somebody gave it that name."""
    import pandas as pd

    frame = pd.read_parquet(path)
    return frame if set(frame.index.names) == {None} else frame.reset_index(allow_duplicates=True)


def _suffix(path: Path) -> str:
    known = _readers()
    for suffix in known:
        if path.name.lower().endswith(suffix):
            return path.name[-len(suffix) :]
    raise DataError(f"{path}: expected a table named {', '.join(f'*{suffix}' for suffix in known)}.")


def _read(path: Path) -> "pd.DataFrame":
    """All columns with text as names, at least one row."""
    from pandas.errors import ParserWarning  # type: ignore[import-untyped, unused-ignore]

    read = _readers()[_suffix(path).lower()]
    if not path.is_file():
        raise DataError(f"{path}: expected a table, found no such file.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ParserWarning)  # else cells of a line that is too long would be dropped
            frame = read(path)
    except DataError:
        raise
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: expected text in UTF-8, found another encoding; save it as UTF-8.") from error
    except (*_UNREADABLE, ParserWarning) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path}: expected a table, found an empty, damaged or different file ({reason}).") from error
    if not len(frame):
        raise DataError(
            f"{path}: expected a table, found no rows below the names {', '.join(map(str, frame.columns))}."
        )
    frame.columns = [str(name).strip() for name in frame.columns]
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()]
        raise DataError(f"{path}: expected different names of columns, found {', '.join(twice)} more than once.")
    return frame.reset_index(drop=True)


def _check_names(columns: list[str], main: str, aux: Sequence[str], features: Sequence[str]) -> None:
    named = [main, *aux, *features]
    for name in named:
        if name not in columns:
            near = get_close_matches(name, columns)
            meant = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise ValueError(f"Unknown column {name!r}.{meant} The table has: {', '.join(columns)}.")
    twice = sorted({name for name in named if named.count(name) > 1})
    if twice:
        raise ValueError(
            f"Given more than once: {', '.join(twice)}. A column is the main target, an auxiliary target or a feature."
        )
    if "main" in aux:
        raise ValueError(
            "An auxiliary column is called 'main', as the main task is in every record. Rename the column in the file."
        )


def _plain(column: "pd.Series") -> Column:
    """The cells of a column, whatever types pandas has for them."""
    kind = _kind(column)
    if kind in _NUMBERS:
        return _finite(column.name, column.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind in _DATES:
        return np.zeros(len(column), dtype="datetime64[s]")  # which dates they are does not matter to anybody here
    if kind not in _TEXTS:
        raise ValueError(
            f"Column {column.name!r} should hold numbers, text, or true and false. Found: {kind}. Use other columns; "
            "name the features that you want with --features."
        )
    cells = [
        None if missing else str(cell).strip() or None for cell, missing in zip(column, column.isna(), strict=True)
    ]
    present = {cell for cell in cells if cell is not None}
    if present and all(map(_ISO_DATE.fullmatch, present)):
        return np.zeros(len(column), dtype="datetime64[s]")  # a CSV file says dates in text
    if kind == "string":
        _check_no_numbers(column.name, present)
    return np.array(cells, dtype=object)


def _kind(column: "pd.Series") -> str:
    import pandas as pd

    return str(pd.api.types.infer_dtype(column, skipna=True))


def _check_no_numbers(name: str, texts: set[str]) -> None:
    """Refuses numbers among which a few texts, such as "?", would make a class of every number."""
    import pandas as pd

    different = sorted(texts)
    odd = [
        text
        for text, number in zip(different, pd.to_numeric(different, errors="coerce"), strict=True)
        if number != number
    ]
    if 0 < len(odd) <= len(different) / 2:
        raise ValueError(
            f"Column {name!r} holds numbers and also text such as {odd[0]!r}. Leave such cells empty if the number is "
            "missing. If all of them are names, write a letter before each number."
        )


def _finite(name: str, numbers: Column) -> Column:
    if (np.abs(numbers) > np.finfo(np.float32).max).any():
        raise ValueError(
            f"Column {name!r} holds numbers that are infinite, or too large for 32 bits. Leave them empty."
        )
    return numbers


def _is_text(column: Column) -> bool:
    return bool(column.dtype.kind == "O")


def _is_date(column: Column) -> bool:
    return bool(column.dtype.kind == "M")


def _different(column: Column) -> list[Any]:
    """The values in ascending order, each once; missing ones do not count."""
    return sorted({cell for cell in column.tolist() if cell is not None and cell == cell})  # NaN is not equal to itself


def target_of(name: str, column: Column) -> Target:
    """The column as a target: text, two different numbers or a few whole ones are classes, others numbers."""
    if _is_date(column):
        raise ValueError(f"Target {name!r} holds dates. A target is a class or a number: make it one of them.")
    values = _different(column)
    if len(values) < 2:
        found = f"only {values[0]!r}" if values else "no label at all"
        raise ValueError(f"Target {name!r} should have at least two different values. Found {found}.")
    if _is_text(column):
        _check_texts(name, values)
    elif len(values) > 2 and (len(values) > MOST_CLASSES or not all(value.is_integer() for value in values)):
        return Target(torch.tensor(_as_short_as_possible(column)))
    number = {value: i for i, value in enumerate(values)}
    labels = torch.tensor([number.get(cell, torch.nan) for cell in column.tolist()], dtype=torch.float32)
    return Target(labels, tuple(map(_class_name, values)))


def _as_short_as_possible(numbers: Column) -> Column:
    """float32, or float64 if that would round differences away: seconds since 1970 are multiples of 128 there."""
    single = numbers.astype(np.float32)
    return single if np.nanmax(np.abs(single - numbers)) <= ROUNDING * np.nanstd(numbers) else numbers


def _class_name(value: str | float) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _useful(path: Path, frame: "pd.DataFrame") -> dict[str, Column]:
    """Without columns that say nothing; one warning tells which."""
    plain = [name for name in frame.columns if _kind(frame[name]) in (*_NUMBERS, *_TEXTS, *_DATES)]
    columns = {name: _plain(frame[name]) for name in plain}
    reasons = dict.fromkeys(frame.columns, "neither numbers nor text")
    reasons |= {name: _why_useless(name, column) for name, column in columns.items()}
    useless = [f"{name} ({reason})" for name, reason in reasons.items() if reason]
    if useless:
        _warn_once(path, f"Left out of the features: {', '.join(useless)}.")
    return {name: column for name, column in columns.items() if not reasons[name]}


@cache
def _warn_once(path: Path, text: str) -> None:
    """A comparison reads the same table for each of its runs. Remembering the arguments is what keeps it silent."""
    del path
    warnings.warn(text, UserWarning, stacklevel=4)  # where `load` was called


def _why_useless(name: str, column: Column) -> str:
    if _is_date(column):
        return "dates"
    if _is_constant(column):
        return "one value only"
    if not name or name.startswith("Unnamed: "):  # as pandas calls a column without a name: row numbers, as a rule
        return "no name"
    present = sum(cell is not None for cell in column)
    return "another text in every row" if _is_text(column) and len(_different(column)) == present else ""


def _is_constant(column: Column) -> bool:
    """Whether all rows are alike: a missing text is a value of its own, a missing number becomes the mean."""
    return len(_different(column)) + (_is_text(column) and None in column) < 2


def _checked(columns: dict[str, Column]) -> dict[str, Column]:
    for name, column in columns.items():
        if _is_date(column):
            raise ValueError(
                f"Feature {name!r} holds dates. Make numbers of them (a year, days since a start), or drop it."
            )
        if _is_constant(column):
            raise ValueError(f"Feature {name!r} has one value only, so nothing can be learnt from it. Drop it.")
        if _is_text(column):
            _check_texts(name, _different(column))
    return columns


def _check_texts(name: str, values: list[str]) -> None:
    if len(values) > MOST_TEXTS:
        raise ValueError(
            f"Column {name!r} has {len(values)} different texts, such as {values[0]!r}: it looks like an identifier. "
            f"At most {MOST_TEXTS} are allowed. Drop it, or name the features that you want."
        )


def _inputs(columns: dict[str, Column], train: Tensor) -> Tensor:
    """The features of all rows, fitted to the training rows: float32, [N, F]."""
    numbers = [column for column in columns.values() if not _is_text(column)]
    texts = [column for column in columns.values() if _is_text(column)]
    steps = [(standardised, numbers), (_one_hot, texts)]
    parts = [step(np.column_stack(group), train.numpy()) for step, group in steps if group]
    return torch.from_numpy(np.hstack(parts)).float()


def _one_hot(texts: Column, train: Column) -> Column:
    from sklearn.preprocessing import OneHotEncoder

    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(texts[train])
    return encoder.transform(texts)  # type: ignore[no-any-return]


def standardised(x: Column, train: Column) -> Column:
    """Columns of numbers with mean 0 and variance 1 over the training rows; missing ones become the mean.

    A column that is constant or empty in the training rows is 0 in all rows. It stays: its place must not depend on
    the division.

    >>> standardised(np.array([[1.0, 5.0], [3.0, 5.0], [np.nan, 7.0]]), train=np.array([0, 1]))
    array([[-1.,  0.],
           [ 1.,  0.],
           [ 0.,  0.]])

    Args:
        x: [N, F], NaN where a number is missing.
        train: training rows.
    """
    from sklearn.impute import SimpleImputer

    x = SimpleImputer(keep_empty_features=True).fit(x[train]).transform(x)
    return scaler_of(x[train]).transform(x)  # type: ignore[no-any-return]


def scaler_of(x: Column) -> "StandardScaler":
    """Standardises columns as those of ``x`` [N, F]; what is constant there becomes 0, whatever it is elsewhere."""
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(x)
    # scikit-learn's own scale of a constant column is 1, so that another value would reach the network as it is.
    scaler.scale_[scaler.scale_ != np.sqrt(scaler.var_)] = np.inf
    return scaler
