"""The columns of a table to predict: which are classes, and which are numbers."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
import torch

from arml.lab.data.table_columns import Column, Remark, distinct_values, is_date, is_text
from arml.lab.data.targets import Target

MOST_CLASSES = 20
"""Whole numbers with more distinct values than this are a quantity, not classes."""
MOST_TEXTS = 1000
"""A target with more distinct values than this cannot be classes; texts look like an identifier."""
ROUNDING = 1e-4
"""The largest change of a number by rounding to 32 bits, in standard deviations; beyond it, numbers keep 64."""


class Kinds(NamedTuple):
    """Targets of which a user says what they are; the contents of a column decide about the others."""

    numbers: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()


AS_FOUND = Kinds()
"""The contents of every column decide."""


def table_targets(columns: Mapping[str, Column], kinds: Kinds, remark: Remark) -> dict[str, Target]:
    """The targets of a table. A line says which whole numbers are read as classes, and which are not.

    Whole numbers of which one stands in a single row are a quantity, such as a count with a long tail: nobody could
    learn that class and be tested on it.
    """
    _check_kinds(kinds, columns)
    open_questions = [name for name in columns if name not in (*kinds.numbers, *kinds.classes)]
    unclear = [name for name in open_questions if _may_be_classes(columns[name])]
    rare = [name for name in unclear if _has_single(columns[name])]
    _remark_whole_numbers([name for name in unclear if name not in rare], rare, remark)
    numbers = {*kinds.numbers, *rare}
    return {name: _target(name, column, numbers, kinds.classes) for name, column in columns.items()}


def _target(name: str, column: Column, numbers: Collection[str], classes: Collection[str]) -> Target:
    if name in numbers:
        return _number_target(name, column)
    return _class_target(name, column) if name in classes else target_of(name, column)


def target_of(name: str, column: Column) -> Target:
    """The column as a target: text, two distinct numbers or a few whole ones are classes, others are numbers."""
    is_number = not is_text(column) and not is_date(column)
    if is_number and len(distinct_values(column)) > 2 and not _may_be_classes(column):
        return _number_target(name, column)
    return _class_target(name, column)


def _may_be_classes(column: Column) -> bool:
    """Whether the column holds 3 to 20 different whole numbers: classes in the shape of numbers, or a quantity."""
    if is_text(column) or is_date(column):
        return False
    values = distinct_values(column)
    return 2 < len(values) <= MOST_CLASSES and all(value.is_integer() for value in values)


def _has_single(column: Column) -> bool:
    return bool((np.unique(column[~np.isnan(column)], return_counts=True)[1] == 1).any())


def _remark_whole_numbers(classes: list[str], numbers: list[str], remark: Remark) -> None:
    if classes:
        remark(
            f"{_name_targets(classes)}: few different whole numbers, read as classes. If they are amounts: "
            "--as-numbers COLUMN."
        )
    if numbers:
        remark(
            f"{_name_targets(numbers)}: whole numbers, one of them in a single row, read as numbers. If they are "
            "classes: --as-classes COLUMN."
        )


def _name_targets(names: list[str]) -> str:
    return f"Target{'s' if len(names) > 1 else ''} {', '.join(map(repr, names))}"


def _check_kinds(kinds: Kinds, targets: Collection[str]) -> None:
    for flag, names in {"--as-numbers": kinds.numbers, "--as-classes": kinds.classes}.items():
        for name in names:
            if name not in targets:
                raise ValueError(f"{flag} {name}: this column is no target. Targets are: {', '.join(targets)}.")
    both = [name for name in kinds.numbers if name in kinds.classes]
    if both:
        raise ValueError(f"--as-numbers and --as-classes both name {', '.join(both)}. A target is one of them.")


def _check_values(name: str, column: Column) -> None:
    if is_date(column):
        raise ValueError(f"Target {name!r} holds dates. A target is a class or a number: make it one of them.")
    values = distinct_values(column)
    if len(values) < 2:
        found = f"only {values[0]!r}" if values else "no label at all"
        raise ValueError(f"Target {name!r} should have at least two different values. Found {found}.")


def _number_target(name: str, column: Column) -> Target:
    _check_values(name, column)
    if is_text(column):
        raise ValueError(
            f"--as-numbers {name}: this column holds text such as {distinct_values(column)[0]!r}. Leave it out there."
        )
    return Target(torch.tensor(_shorten_floats(column)))


def _class_target(name: str, column: Column) -> Target:
    _check_values(name, column)
    values = distinct_values(column)
    if len(values) > MOST_TEXTS:
        found, looks = ("texts", "an identifier") if is_text(column) else ("numbers", "a quantity")
        raise ValueError(
            f"Target {name!r} has {len(values)} different {found}, such as {values[0]!r}: it looks like {looks}. "
            f"At most {MOST_TEXTS} classes are allowed. Name another target."
        )
    number = {value: i for i, value in enumerate(values)}
    labels = torch.tensor([number.get(cell, torch.nan) for cell in column.tolist()], dtype=torch.float32)
    return Target(labels, tuple(map(_class_name, values)))


def _shorten_floats(numbers: Column) -> Column:
    """float32, or float64 if float32 would round differences away: it stores seconds since 1970 in steps of 128."""
    single = numbers.astype(np.float32)
    return single if np.nanmax(np.abs(single - numbers)) <= ROUNDING * np.nanstd(numbers) else numbers


def _class_name(value: str | float) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
