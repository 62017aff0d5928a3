"""Any table in a CSV or Parquet file: some columns are targets, the others are features."""

from collections.abc import Sequence
from difflib import get_close_matches
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import torch

from arml.lab.data.table_columns import Column, Remark, distinct_values, is_date, is_plain, is_text, plain_cells
from arml.lab.data.table_features import (
    check_named,
    choose_useful,
    encode,
    expand_dates,
    remark_left_out,
    remark_many_values,
)
from arml.lab.data.table_files import SEPARATORS, TableFile, TableRemark, read_table, remark_once, table_suffix
from arml.lab.data.targets import Examples, Target

__all__ = ["MOST_CLASSES", "TableRemark", "column_names", "load", "target_of"]

MOST_CLASSES = 20
"""Whole numbers with more distinct values than this are a quantity, not classes."""
MOST_TEXTS = 1000
"""A target with more distinct texts than this looks like an identifier."""
ROUNDING = 1e-4
"""The largest change of a number by rounding to 32 bits, in standard deviations; beyond it, numbers keep 64."""


def load(
    path: Path, *, main: str, aux: Sequence[str], features: Sequence[str] = (), numbers: Sequence[str] = ()
) -> Examples:
    """Reads a ``.csv``, ``.csv.gz``, ``.tsv`` or ``.parquet`` file; the examples are named after the file.

    The contents of a target column decide its kind:

    - text, or true and false: classes, sorted by name
    - numbers with exactly two distinct values: two classes, the smaller value first
    - whole numbers with 3 to 20 distinct values: classes in the order of the numbers
    - other numbers: a number, in the units of the file

    Spaces around column names and around text are ignored. Empty cells, and cells that pandas reads as missing
    (``NaN``, ``NA``, ``None``, ``null``), are missing labels. Missing numbers among the features become the column's
    mean. Numbers are standardised. Text, true and false become one column of 0 and 1 per value, including a missing
    value; new values are 0 in all of them. A column of text with more than 30 values keeps its 29 most frequent ones.
    Dates become numbers. Only the training rows decide all of this. In the inputs, numbers come first, then the rest,
    both in the order of the features.

    Separators, decimal commas, thousands and dates are detected. A warning of the class ``TableRemark``, once per
    process, says in one line each what was not taken as it is written.

    Args:
        path: The file.
        main: The main task's column. It may have few labels.
        aux: The auxiliary tasks' columns.
        features: Columns to predict from. If none is named, all others, except useless ones: one value only, no name,
            another text in every row, free text, row numbers, neither numbers nor text.
        numbers: Targets that are numbers, however few different values they have: counts, such as 0, 1 and 2.
    """
    table, remark = read_table(path), partial(remark_once, path)
    if not table.is_usual:
        remark(f"{path.name}: columns are separated by {SEPARATORS[table.separator]}.")
    _check_names(list(table.frame.columns), main, aux, features)
    if unknown := [name for name in numbers if name not in (main, *aux)]:
        raise ValueError(f"--numbers names targets. {', '.join(unknown)} is none: they are {', '.join((main, *aux))}.")
    targets = {name: target_of(name, _cells(table, name, remark), is_number=name in numbers) for name in (main, *aux)}
    chosen = (
        check_named({name: _cells(table, name, remark) for name in features})
        if features
        else _choose_features(table._replace(frame=table.frame.drop(columns=list(targets))), remark)
    )
    if not chosen:
        raise ValueError(f"{path}: no column is left to predict from apart from the targets {', '.join(targets)}.")
    remark_many_values(chosen, remark)
    inputs = partial(encode, expand_dates(chosen, remark))
    return Examples(path.name.removesuffix(table_suffix(path)), targets, inputs)


def column_names(path: Path) -> tuple[str, ...]:
    """The names of the columns of a table, in the order of the file."""
    return _names_at(path, path.stat().st_mtime_ns if path.exists() else 0)


@lru_cache(maxsize=64)  # a study of many tables asks again for each of its runs
def _names_at(path: Path, modified: int) -> tuple[str, ...]:
    del modified
    return tuple(read_table(path).frame.columns)


def _cells(table: TableFile, name: str, remark: Remark) -> Column:
    return plain_cells(table.frame[name], remark, separator=table.separator)


def _choose_features(table: TableFile, remark: Remark) -> dict[str, Column]:
    plain = [name for name in table.frame.columns if is_plain(table.frame[name])]
    remark_left_out({name: "neither numbers nor text" for name in table.frame.columns if name not in plain}, remark)
    return choose_useful({name: _cells(table, name, remark) for name in plain}, remark)


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


def target_of(name: str, column: Column, *, is_number: bool = False) -> Target:
    """The column as a target: text, two distinct numbers or a few whole ones are classes, others are numbers."""
    if is_date(column):
        raise ValueError(f"Target {name!r} holds dates. A target is a class or a number: make it one of them.")
    values = distinct_values(column)
    if len(values) < 2:
        found = f"only {values[0]!r}" if values else "no label at all"
        raise ValueError(f"Target {name!r} should have at least two different values. Found {found}.")
    if is_text(column):
        if is_number:
            raise ValueError(f"Target {name!r} holds texts such as {values[0]!r}. Leave it out of --numbers.")
        _check_texts(name, values)
    elif is_number or len(values) > MOST_CLASSES or (len(values) > 2 and not all(v.is_integer() for v in values)):
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


def _check_texts(name: str, values: list[str]) -> None:
    if len(values) > MOST_TEXTS:
        raise ValueError(
            f"Target {name!r} has {len(values)} different texts, such as {values[0]!r}: it looks like an identifier. "
            f"At most {MOST_TEXTS} are allowed. Name another target."
        )
