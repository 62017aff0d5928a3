"""The columns of a table to predict from: which are of use, and how they become numbers."""

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from arml.lab.data.table_columns import Column, Remark, distinct_values, is_date, is_text, name_columns
from arml.lab.data.table_text import MOST_VALUES, encode_text, is_free_text
from arml.lab.data.targets import Target

# scikit-learn is imported where it is used, so that image data sets do not need it.
if TYPE_CHECKING:
    from sklearn.preprocessing import StandardScaler

NAMES = 0.5
"""Text with more than ``MOST_VALUES`` values, in more than this share of the rows, is a name and no choice."""
LEAST_ROWS = 20
"""In shorter tables, whole numbers that count the rows may be anything."""
_IDENTIFIER = re.compile(r"(^|[\W_])(id|ids|uuid|guid|key|index|idx|nr|no|number|row)$|[a-z](ID|Id|Nr|No)$")


def choose_useful(columns: Mapping[str, Column], remark: Remark) -> dict[str, Column]:
    """The columns to learn from. Useless ones are left out, with a line for each reason."""
    reasons = {name: _find_fault(name, column) for name, column in columns.items()}
    remark_left_out(reasons, remark)
    return {name: column for name, column in columns.items() if not reasons[name]}


def remark_left_out(reasons: Mapping[str, str], remark: Remark) -> None:
    """One line per reason, with the names of the columns; an empty reason leaves nothing out."""
    names = defaultdict(list)
    for name, reason in reasons.items():
        names[reason].append(name)
    for reason, mine in names.items():
        if reason:
            remark(f"{name_columns(mine)}: {reason}, left out. --features names the columns to learn from.")


def check_named(columns: Mapping[str, Column]) -> dict[str, Column]:
    """The same columns; refuses those from which nothing can be learned."""
    for name, column in columns.items():
        if is_constant(column):
            raise ValueError(f"Feature {name!r} has one value only, so nothing can be learnt from it. Drop it.")
    return dict(columns)


def is_constant(column: Column) -> bool:
    """Whether all rows are equal: a missing text is a value of its own, a missing number becomes the mean."""
    return len(distinct_values(column)) + (is_text(column) and None in column) < 2


def _find_fault(name: str, column: Column) -> str:
    """Why the column is of no use; empty if it may be."""
    values = distinct_values(column)
    if is_constant(column):
        return "one value only"
    if not name or name.startswith("Unnamed: "):  # pandas' name for a column without one, usually row numbers
        return "no name"
    if is_date(column) or is_free_text(column):
        return ""
    if is_text(column):
        present = sum(cell is not None for cell in column)
        if len(values) == present:
            return "a different text in every row"
        return "a different text in most rows" if len(values) > max(MOST_VALUES, NAMES * present) else ""
    return "a different whole number in every row" if _counts_rows(name, column, values) else ""


def _counts_rows(name: str, column: Column, values: list[float]) -> bool:
    """Whether the numbers are row numbers or another identifier: all whole, all different, and in a row or named so."""
    if len(values) < max(LEAST_ROWS, len(column)) or not all(value.is_integer() for value in values):
        return False
    return bool(values[-1] - values[0] == len(values) - 1 or _IDENTIFIER.search(name))


def expand_dates(columns: Mapping[str, Column], remark: Remark) -> dict[str, Column]:
    """The same columns, with numbers in place of dates: the day, the month and the day of the week, where they vary."""
    found: dict[str, Column] = {}
    for name, column in columns.items():
        if not is_date(column):
            found[name] = column
            continue
        parts = {f"{name} ({part})": numbers for part, numbers in _date_parts(column).items()}
        parts = {part: numbers for part, numbers in parts.items() if not is_constant(numbers)}
        remark(f"Column {name!r} holds dates: read as {', '.join(map(repr, parts))}.")
        found |= parts
    return found


def _date_parts(dates: Column) -> dict[str, Column]:
    days, missing = dates.astype("datetime64[D]").astype(np.int64), np.isnat(dates)
    months = dates.astype("datetime64[M]").astype(np.int64) % 12 + 1
    weekdays = (days + 3) % 7  # day 0, the first of January 1970, was a Thursday
    exact = dates.astype("datetime64[s]").astype(np.int64) / 86_400
    parts = {"day": exact, "month": months, "weekday": weekdays}
    return {part: np.where(missing, np.nan, numbers.astype(np.float64)) for part, numbers in parts.items()}


def remark_many_values(columns: Mapping[str, Column], remark: Remark) -> None:
    """A line about choices whose rare values share one input."""
    texts = {name: len(distinct_values(column)) for name, column in columns.items() if _is_choice(column)}
    many = {name: count for name, count in texts.items() if count > MOST_VALUES}
    if many:
        verb, count = ("has", max(many.values())) if len(many) == 1 else ("have up to", max(many.values()))
        remark(
            f"{name_columns(list(many))} {verb} {count} different texts: the {MOST_VALUES - 1} most frequent become "
            "inputs, and one input stands for all others."
        )


def remark_giveaways(columns: Mapping[str, Column], main: str, target: Target, remark: Remark) -> None:
    """A line about columns that tell the answer of the main target in every labelled row."""
    told = [name for name, column in columns.items() if _tells(column, target)]
    if told:
        kind, they, it = ("an input that tells", "it is", "it a task")
        if len(told) > 1:
            kind, they, it = ("inputs, each of which tells", "they are", "them tasks")
        remark(
            f"{name_columns(told)}: {kind} {main!r} in every labelled row. If {they} not known when predicting, the "
            f"errors below are too good: make {it} with --aux, or name the inputs with --features."
        )


def _tells(column: Column, target: Target) -> bool:
    """Whether each value goes with one class only, and there are no more values than classes; or numbers on a line."""
    present = target.present.numpy()
    mine, answers = column[present], target.values.numpy()[present]
    if len(answers) < LEAST_ROWS or is_date(column):
        return False
    if target.is_numeric:
        if is_text(column) or np.isnan(mine).any() or is_constant(mine):
            return False
        return bool(abs(np.corrcoef(mine, answers)[0, 1]) > 1 - 1e-9)
    pairs = set(zip(mine.tolist(), answers.tolist(), strict=True))
    return len(pairs) == len({value for value, _ in pairs}) <= len(target.classes)


def encode(columns: Mapping[str, Column], train: Tensor) -> Tensor:
    """The features of all rows, fitted to the training rows: float32, [N, F]. Numbers, then choices, then free text."""
    numbers = [column for column in columns.values() if not is_text(column)]
    choices = [column for column in columns.values() if _is_choice(column)]
    steps = [(standardise, numbers), (_encode_one_hot, choices)]
    parts = [step(np.column_stack(group), train.numpy()) for step, group in steps if group]
    texts = [encode_text(column, train.numpy()) for column in columns.values() if is_free_text(column)]
    return torch.from_numpy(np.hstack([*parts, *texts])).float()


def _is_choice(column: Column) -> bool:
    """Whether the column holds one of several values, and each is an input of its own."""
    return is_text(column) and not is_free_text(column)


def _encode_one_hot(texts: Column, train: Column) -> Column:
    from sklearn.preprocessing import OneHotEncoder

    encoder = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=MOST_VALUES, sparse_output=False, dtype=np.float64
    )
    return encoder.fit(texts[train]).transform(texts)  # type: ignore[no-any-return]


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
