"""Any table in a CSV or Parquet file: some columns are targets, the others are features."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache, partial
from pathlib import Path

from arml.lab.data.table_columns import Column, Reading, describe_readings, is_plain, plain_cells
from arml.lab.data.table_features import (
    check_named,
    choose_useful,
    encode,
    expand_dates,
    remark_giveaways,
    remark_left_out,
    remark_many_values,
)
from arml.lab.data.table_files import SEPARATORS, TableFile, TableRemark, read_table, remark_once, table_suffix
from arml.lab.data.table_targets import AS_FOUND, Kinds, table_targets
from arml.lab.data.table_text import remark_free_text
from arml.lab.data.targets import Examples

__all__ = ["AS_FOUND", "Kinds", "TableRemark", "column_names", "load"]


def load(
    path: Path, *, main: str, aux: Sequence[str], features: Sequence[str] = (), kinds: Kinds = AS_FOUND
) -> Examples:
    """Reads a ``.csv``, ``.csv.gz``, ``.tsv`` or ``.parquet`` file; the examples are named after the file.

    The contents of a target column decide its kind, unless ``kinds`` names it:

    - text, or true and false: classes, sorted by name
    - numbers with exactly two distinct values: two classes, the smaller value first
    - whole numbers with 3 to 20 distinct values, each in two rows or more: classes in the order of the numbers
    - other numbers: a number, in the units of the file

    Spaces around column names and around text are ignored. Empty cells, and cells that pandas reads as missing
    (``NaN``, ``NA``, ``None``, ``null``), are missing labels. Missing numbers among the features become the column's
    mean. Numbers are standardised. Text, true and false become one column of 0 and 1 per value, including a missing
    value; new values are 0 in all of them. A column of text with more than 30 values keeps its 29 most frequent ones.
    Free text, of five words or more on average, becomes 64 numbers that stand for its words. Dates become numbers.
    Only the training rows decide all of this. In the inputs, numbers come first, then choices, then free text, each in
    the order of the features.

    Separators, decimal commas, thousands and dates are detected. A warning of the class ``TableRemark``, once per
    process, says in one line each what was not taken as it is written.

    Args:
        path: The file.
        main: The main task's column. It may have few labels.
        aux: The auxiliary tasks' columns.
        features: Columns to predict from. If none is named, all others, except useless ones: one value only, no name,
            short text that differs in most rows, row numbers, neither numbers nor text.
        kinds: Targets that are numbers or classes whatever their contents suggest.
    """
    table, remark = read_table(path), partial(remark_once, path)
    if not table.is_usual:
        remark(f"{path.name}: columns are separated by {SEPARATORS[table.separator]}.")
    _check_names(list(table.frame.columns), main, aux, features)
    plain = [name for name in table.frame.columns if is_plain(table.frame[name])]
    cells, readings = _read_cells(table, dict.fromkeys((main, *aux, *(features or plain))))
    for line in describe_readings(readings):
        remark(line)
    targets = table_targets({name: cells[name] for name in (main, *aux)}, kinds, remark)
    others = {name: column for name, column in cells.items() if name not in targets}
    if not features:
        remark_left_out({name: "neither numbers nor text" for name in table.frame.columns if name not in cells}, remark)
    chosen = check_named(others) if features else choose_useful(others, remark)
    if not chosen:
        raise ValueError(f"{path}: no column is left to predict from apart from the targets {', '.join(targets)}.")
    remark_many_values(chosen, remark)
    remark_free_text(chosen, remark)
    remark_giveaways(chosen, main, targets[main], remark)
    inputs = partial(encode, expand_dates(chosen, remark))
    return Examples(path.name.removesuffix(table_suffix(path)), targets, inputs)


def column_names(path: Path) -> tuple[str, ...]:
    """The names of the columns of a table, in the order of the file."""
    return _names_at(path, path.stat().st_mtime_ns if path.exists() else 0)


@lru_cache(maxsize=64)  # a study of many tables asks again for each of its runs
def _names_at(path: Path, modified: int) -> tuple[str, ...]:
    del modified
    return tuple(read_table(path).frame.columns)


def _read_cells(table: TableFile, names: Iterable[str]) -> tuple[dict[str, Column], list[Reading]]:
    """The cells of these columns, and how some of them were read."""
    readings: list[Reading] = []
    return {
        name: plain_cells(table.frame[name], readings.append, separator=table.separator) for name in names
    }, readings


def _check_names(columns: list[str], main: str, aux: Sequence[str], features: Sequence[str]) -> None:
    named = [main, *aux, *features]
    for name in named:
        if name not in columns:
            alike = {column.lower(): column for column in columns}
            near = [alike[word] for word in get_close_matches(name.lower(), alike)]
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
