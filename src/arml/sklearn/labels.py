"""Labels as users have them, for rows of which some have none, become targets."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import torch
from sklearn.utils import check_array, column_or_1d

from arml.lab.data.table_targets import MOST_CLASSES, target_of
from arml.lab.data.targets import Target

Array: TypeAlias = "np.ndarray[Any, Any]"

LABELS = {"dtype": None, "ensure_2d": False, "ensure_all_finite": "allow-nan"}
"""What scikit-learn should check about labels."""
ASK = "ask"
"""The default of ``missing``: -1 beside other classes is an error, since it may mean either."""


def aux_targets(aux: Any, x: Any, num_rows: int, missing: Any) -> Iterator[tuple[str, Target]]:
    """The columns of ``aux`` as targets, by name, in the order of the rows ``x``."""
    names, columns = _split_columns(_align(aux, x))
    if len(set(names)) < len(names):
        raise ValueError(f"The columns of `aux` should have different names. Got {', '.join(names)}.")
    if "main" in names:
        raise ValueError("A column of `aux` is called 'main', as the main target is. Rename the column.")
    for name, values in zip(names, columns, strict=True):
        column = check_column(values, name)
        if len(column) != num_rows:
            raise ValueError(f"`aux` should have a row for each of the {num_rows} rows of X. Got {len(column)} rows.")
        yield name, target_of(name, _simplify(clear_missing(column, f"column {name!r} of `aux`", missing)))


def _align(aux: Any, x: Any) -> Any:
    """``aux`` in the order of the rows of ``x``, if both have an index; refuses one with other rows."""
    if not (hasattr(aux, "index") and hasattr(aux, "reindex") and hasattr(x, "index")):
        return aux
    if len(aux) != len(x) or aux.index.equals(x.index):
        return aux
    if not (aux.index.is_unique and x.index.is_unique and x.index.isin(aux.index).all()):
        raise ValueError(
            f"`aux` and X have different rows: their indices start with {aux.index[:3].tolist()} and "
            f"{x.index[:3].tolist()}. Give both the same index, or pass aux.to_numpy() if the order is right."
        )
    return aux.reindex(x.index)


def clear_missing(column: Array, name: str, missing: Any) -> Array:
    """The column with None in place of the labels that ``missing`` names; asks about -1 where it may be one."""
    if isinstance(missing, str) and missing == ASK:
        _ask_about_minus_one(column, name)
        return column
    if missing is None or not bool(np.any(found := column == missing)):
        return column
    if column.dtype.kind == "f":
        return np.where(found, np.nan, column)
    cleared = column.astype(object)
    cleared[found] = None
    return cleared


def _ask_about_minus_one(column: Array, name: str) -> None:
    """Refuses -1 beside two or more classes 0, 1, ...: it is scikit-learn's mark of a missing label, or a class."""
    _, known = find_labels(column)
    if known.dtype.kind not in "iuf":
        return
    values = np.unique(known)
    is_whole = len(values) <= MOST_CLASSES and bool((values == np.round(values)).all())
    if is_whole and len(values) > 2 and values[0] == -1 and values[1] == 0:
        raise ValueError(
            f"Does -1 in {name} mean a missing label? It has {', '.join(f'{value:g}' for value in values)}. Say "
            "`missing=-1` if it does, `missing=None` if -1 is a class or a number like the others."
        )


def _split_columns(aux: Any) -> tuple[list[str], list[Any]]:
    if hasattr(aux, "columns"):
        return [str(name) for name in aux.columns], [aux[name] for name in aux.columns]
    table = np.asarray(aux)
    if table.ndim != 2 or not table.shape[1]:
        raise ValueError(
            f"`aux` should be an array or a DataFrame of shape [N, K], a column for each task. Got {table.shape}. "
            "A single task is a column, too: aux.reshape(-1, 1), or series.to_frame()."
        )
    return [f"aux{k}" for k in range(table.shape[1])], list(table.T)


def _simplify(column: Array) -> Array:
    """Numbers as float64 with NaN, text as objects with None; booleans become text."""
    here, known = find_labels(column)
    if known.dtype.kind in "iuf":
        return np.where(here, column, np.nan).astype(np.float64)
    if known.dtype.kind == "M":
        return known
    return np.array([str(value) if there else None for value, there in zip(column, here, strict=True)], dtype=object)


def class_target(here: Array, known: Array) -> Target:
    """A target of class numbers: ``known`` are the labels of the rows that are ``here`` [N], classes are sorted."""
    classes, numbers = np.unique(known, return_inverse=True)
    values = np.full(len(here), np.nan)
    values[here] = numbers
    return Target(torch.tensor(values), tuple(map(str, classes)))


def check_column(values: Any, name: str) -> Array:
    """Labels as a flat array, checked by scikit-learn."""
    column: Array = check_array(values, **LABELS, input_name=name)
    return column_or_1d(column)  # type: ignore[no-any-return]


def find_labels(column: Array) -> tuple[Array, Array]:
    """The mask of the rows that have a label, [N], and the labels of these rows."""
    here = np.array([not _is_missing(value) for value in column.tolist()], dtype=bool)
    # A column may be of objects only to hold a None, or because of other columns: its labels become numbers or text.
    return here, np.array(column[here].tolist()) if column.dtype == object else column[here]


def _is_missing(value: object) -> bool:
    """Whether ``value`` is None, NaN or pandas' NA, which is recognised by its type without importing pandas."""
    return value is None or type(value).__name__ == "NAType" or value != value
