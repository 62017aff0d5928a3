"""Any table in a CSV or Parquet file: some columns are targets, the others are features."""

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
from arml.lab.data.limits import check_inflated_size
from arml.lab.data.targets import Examples, Target

# pandas and scikit-learn are imported where they are used, so that image data sets do not need them.
if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped, unused-ignore]
    from sklearn.preprocessing import StandardScaler

MOST_CLASSES = 20
"""Whole numbers with more distinct values than this are a quantity, not classes."""
MOST_TEXTS = 1000
"""A column with more distinct texts than this looks like an identifier."""
ROUNDING = 1e-4
"""The largest change of a number by rounding to 32 bits, in standard deviations; beyond it, numbers keep 64."""

Column: TypeAlias = "np.ndarray[Any, Any]"
"""One cell per row. Numbers: float64 with NaN; text, true and false: str with ``None``; dates: datetime64."""

_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?")
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal", "empty")
_TEXTS = ("string", "boolean", "categorical")
_DATES = ("datetime64", "datetime", "date", "period", "timedelta64", "timedelta", "time")
_SEPARATORS = {",": "commas", ";": "';'", "\t": "tabs"}
_UNREADABLE = (OSError, EOFError, ValueError, NotImplementedError, zlib.error)


def load(path: Path, *, main: str, aux: Sequence[str], features: Sequence[str] = ()) -> Examples:
    """Reads a ``.csv``, ``.csv.gz``, ``.tsv`` or ``.parquet`` file; the examples are named after the file.

    The contents of a target column decide its kind:

    - text, or true and false: classes, sorted by name
    - numbers with exactly two distinct values: two classes, the smaller value first
    - whole numbers with 3 to 20 distinct values: classes in the order of the numbers
    - other numbers: a number, in the units of the file

    Spaces around column names and around text are ignored. Empty cells, and cells that pandas reads as missing
    (``NaN``, ``NA``, ``None``, ``null``), are missing labels. Missing numbers among the features become the column's
    mean. Numbers are standardised. Text, true and false become one column of 0 and 1 per value, including a missing
    value; new values are 0 in all of them. Only the training rows decide all of this. In the inputs, numbers come
    first, then the rest, both in the order of the features.

    Args:
        path: The file.
        main: The main task's column. It may have few labels.
        aux: The auxiliary tasks' columns.
        features: Columns to predict from. If none is named, all others, except useless ones (one value only, dates,
            another text in every row, no name, neither numbers nor text). A warning, once per process, lists those.
    """
    frame = _read(path)
    _check_names(list(frame.columns), main, aux, features)
    targets = {name: target_of(name, _plain_cells(frame[name])) for name in (main, *aux)}
    named = {name: _plain_cells(frame[name]) for name in features}
    chosen = _check_features(named or _useful_columns(path, frame.drop(columns=list(targets))))
    if not chosen:
        raise ValueError(f"{path}: no column is left to predict from apart from the targets {', '.join(targets)}.")
    return Examples(path.name.removesuffix(_suffix(path)), targets, partial(_inputs, chosen))


def column_names(path: Path) -> tuple[str, ...]:
    """The names of all columns in the file."""
    return tuple(_read(path).columns)


def _readers() -> dict[str, Callable[[Path], "pd.DataFrame"]]:
    csv, tsv = (partial(_read_text, separator=separator) for separator in (",", "\t"))
    return {".csv": csv, ".csv.gz": csv, ".tsv": tsv, ".parquet": _read_parquet}


def _read_text(path: Path, separator: str) -> "pd.DataFrame":
    """The table with the column names of the file, including a name that occurs twice."""
    import pandas as pd

    # Without index_col=False, one comma too many at the end of every line would shift all columns by one.
    read = partial(pd.read_csv, path, sep=separator, index_col=False, skipinitialspace=True)
    names = read(header=None, nrows=1, dtype=str, na_filter=False).iloc[0].tolist()
    _check_separator(path, names, separator)
    frame = read(low_memory=False)
    # pandas renames a second column "y" to "y.1", and it would become a feature under that name.
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
    """The table; a named index becomes a column, since somebody gave it that name."""
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
    """The table, with text as column names and at least one row."""
    from pandas.errors import ParserWarning  # type: ignore[import-untyped, unused-ignore]

    read = _readers()[_suffix(path).lower()]
    if not path.is_file():
        raise DataError(f"{path}: expected a table, found no such file.")
    check_inflated_size(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ParserWarning)  # otherwise cells of a line that is too long are dropped
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


def _plain_cells(column: "pd.Series") -> Column:
    """The cells of a column in a plain type, whatever types pandas has for them."""
    kind = _kind(column)
    if kind in _NUMBERS:
        return _check_finite(column.name, column.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind in _DATES:
        return np.zeros(
            len(column), dtype="datetime64[s]"
        )  # dates are always refused or left out, so their values do not matter
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
        return np.zeros(len(column), dtype="datetime64[s]")  # a CSV file writes dates as text
    if kind == "string":
        _check_no_numbers(column.name, present)
    return np.array(cells, dtype=object)


def _kind(column: "pd.Series") -> str:
    import pandas as pd

    return str(pd.api.types.infer_dtype(column, skipna=True))


def _check_no_numbers(name: str, texts: set[str]) -> None:
    """Refuses numbers mixed with a few texts such as "?", which would turn every number into a class."""
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


def _check_finite(name: str, numbers: Column) -> Column:
    if (np.abs(numbers) > np.finfo(np.float32).max).any():
        raise ValueError(
            f"Column {name!r} holds numbers that are infinite, or too large for 32 bits. Leave them empty."
        )
    return numbers


def _is_text(column: Column) -> bool:
    return bool(column.dtype.kind == "O")


def _is_date(column: Column) -> bool:
    return bool(column.dtype.kind == "M")


def _distinct_values(column: Column) -> list[Any]:
    """The values in ascending order, each once, without missing ones."""
    return sorted({cell for cell in column.tolist() if cell is not None and cell == cell})  # NaN is not equal to itself


def target_of(name: str, column: Column) -> Target:
    """The column as a target: text, two distinct numbers or a few whole ones are classes, others are numbers."""
    if _is_date(column):
        raise ValueError(f"Target {name!r} holds dates. A target is a class or a number: make it one of them.")
    values = _distinct_values(column)
    if len(values) < 2:
        found = f"only {values[0]!r}" if values else "no label at all"
        raise ValueError(f"Target {name!r} should have at least two different values. Found {found}.")
    if _is_text(column):
        _check_texts(name, values)
    elif len(values) > 2 and (len(values) > MOST_CLASSES or not all(value.is_integer() for value in values)):
        return Target(torch.tensor(_shorten_floats(column)))
    number = {value: i for i, value in enumerate(values)}
    labels = torch.tensor([number.get(cell, torch.nan) for cell in column.tolist()], dtype=torch.float32)
    return Target(labels, tuple(map(_class_name, values)))


def _shorten_floats(numbers: Column) -> Column:
    """float32, or float64 if float32 would round differences away: it stores seconds since 1970 in steps of 128."""
    single = numbers.astype(np.float32)
    return single if np.nanmax(np.abs(single - numbers)) <= ROUNDING * np.nanstd(numbers) else numbers


def _class_name(value: str | float) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _useful_columns(path: Path, frame: "pd.DataFrame") -> dict[str, Column]:
    """The columns to learn from; one warning lists the useless ones that are left out."""
    plain = [name for name in frame.columns if _kind(frame[name]) in (*_NUMBERS, *_TEXTS, *_DATES)]
    columns = {name: _plain_cells(frame[name]) for name in plain}
    reasons = dict.fromkeys(frame.columns, "neither numbers nor text")
    reasons |= {name: _reason_to_leave_out(name, column) for name, column in columns.items()}
    useless = [f"{name} ({reason})" for name, reason in reasons.items() if reason]
    if useless:
        _warn_once(path, f"Left out of the features: {', '.join(useless)}.")
    return {name: column for name, column in columns.items() if not reasons[name]}


@cache
def _warn_once(path: Path, text: str) -> None:
    """Warns once per process: a comparison reads the same table for each of its runs. The cache keeps it silent."""
    del path
    warnings.warn(text, UserWarning, stacklevel=4)  # where `load` was called


def _reason_to_leave_out(name: str, column: Column) -> str:
    if _is_date(column):
        return "dates"
    if _is_constant(column):
        return "one value only"
    if not name or name.startswith("Unnamed: "):  # pandas' name for a column without one, usually row numbers
        return "no name"
    present = sum(cell is not None for cell in column)
    return "another text in every row" if _is_text(column) and len(_distinct_values(column)) == present else ""


def _is_constant(column: Column) -> bool:
    """Whether all rows are equal: a missing text is a value of its own, a missing number becomes the mean."""
    return len(_distinct_values(column)) + (_is_text(column) and None in column) < 2


def _check_features(columns: dict[str, Column]) -> dict[str, Column]:
    for name, column in columns.items():
        if _is_date(column):
            raise ValueError(
                f"Feature {name!r} holds dates. Make numbers of them (a year, days since a start), or drop it."
            )
        if _is_constant(column):
            raise ValueError(f"Feature {name!r} has one value only, so nothing can be learnt from it. Drop it.")
        if _is_text(column):
            _check_texts(name, _distinct_values(column))
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
    steps = [(standardise, numbers), (_encode_one_hot, texts)]
    parts = [step(np.column_stack(group), train.numpy()) for step, group in steps if group]
    return torch.from_numpy(np.hstack(parts)).float()


def _encode_one_hot(texts: Column, train: Column) -> Column:
    from sklearn.preprocessing import OneHotEncoder

    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(texts[train])
    return encoder.transform(texts)  # type: ignore[no-any-return]


def standardise(x: Column, train: Column) -> Column:
    """Scales columns to mean 0 and variance 1 over the training rows; missing numbers become the mean.

    A column that is constant or empty in the training rows becomes 0 in all rows. It is not removed, since the number
    of inputs must not depend on the split.

    >>> standardise(np.array([[1.0, 5.0], [3.0, 5.0], [np.nan, 7.0]]), train=np.array([0, 1]))
    array([[-1.,  0.],
           [ 1.,  0.],
           [ 0.,  0.]])

    Args:
        x: [N, F], NaN where a number is missing.
        train: Training rows.
    """
    from sklearn.impute import SimpleImputer

    x = SimpleImputer(keep_empty_features=True).fit(x[train]).transform(x)
    return scaler_of(x[train]).transform(x)  # type: ignore[no-any-return]


def scaler_of(x: Column) -> "StandardScaler":
    """A scaler fitted to the columns of ``x`` [N, F]; a column that is constant in ``x`` always becomes 0."""
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(x)
    # scikit-learn's own scale of a constant column is 1; a new value in it would reach the network unscaled.
    scaler.scale_[scaler.scale_ != np.sqrt(scaler.var_)] = np.inf
    return scaler
