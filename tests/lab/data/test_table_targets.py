"""Whole numbers as targets: classes, or amounts?"""

import math
import warnings

import pandas as pd
import pytest
import torch

from arml.lab.data import table
from arml.lab.data.table_files import TableRemark

COUNTS = [0] * 40 + [1] * 12 + [2] * 4 + [3] * 2 + [8]
"""A count with a long tail, such as flares per day: the largest value stands in one row."""
GRADES = [1, 2, 3, 4, 5] * 11 + [1, 2, 3, 4]


def load(folder, kinds=table.AS_FOUND, **columns):
    frame = pd.DataFrame({"x": [i / 7 for i in range(len(COUNTS))], **columns})
    frame.to_csv(folder / "t.csv", index=False)
    main, *aux = columns
    return table.load(folder / "t.csv", main=main, aux=aux, features=["x"], kinds=kinds).targets


def test_a_count_with_a_value_in_a_single_row_is_a_number_and_a_line_says_so(tmp_path):
    with pytest.warns(TableRemark) as warned:
        targets = load(tmp_path, flares=COUNTS, grade=GRADES)
    assert targets["flares"].is_numeric
    assert targets["flares"].values.tolist() == COUNTS
    assert targets["grade"].classes == ("1", "2", "3", "4", "5")
    assert [str(warning.message) for warning in warned] == [
        "Target 'grade': few different whole numbers, read as classes. If they are amounts: --as-numbers COLUMN.",
        "Target 'flares': whole numbers, one of them in a single row, read as numbers. If they are classes: "
        "--as-classes COLUMN.",
    ]


def test_missing_labels_do_not_count_as_a_value(tmp_path):
    with pytest.warns(TableRemark, match="read as classes"):
        targets = load(tmp_path, grade=[*GRADES[:-1], math.nan])
    assert targets["grade"].classes == ("1", "2", "3", "4", "5")


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_a_user_can_say_what_a_target_is(tmp_path, kind):
    columns = {"flares": COUNTS, "grade": GRADES, "two": [5, 7] * 29 + [5], "size": [i / 3 for i in range(59)]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is left to be said
        targets = load(tmp_path, table.Kinds(**{kind: tuple(columns)}), **columns)
    assert {target.is_numeric for target in targets.values()} == {kind == "numbers"}
    assert targets["flares"].classes == (("0", "1", "2", "3", "8") if kind == "classes" else ())
    assert targets["two"].values[:2].tolist() == ([5, 7] if kind == "numbers" else [0, 1])


WRONG = {
    "feature": (table.Kinds(numbers=("x",)), "--as-numbers x: this column is no target. Targets are: m, text, big"),
    "unknown": (table.Kinds(classes=("y",)), "--as-classes y: this column is no target"),
    "both": (table.Kinds(("m",), ("m",)), "--as-numbers and --as-classes both name m"),
    "text": (table.Kinds(("text",)), "--as-numbers text: this column holds text such as 'a'"),
    "quantity": (table.Kinds(classes=("big",)), "Target 'big' has 1001 different numbers.* looks like a quantity"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_a_target_cannot_be_is_said(tmp_path, case):
    kinds, message = WRONG[case]
    count = 1001
    columns = {"m": [0, 1] * 500 + [0], "text": ["a", "b"] * 500 + ["a"], "big": range(count)}
    pd.DataFrame({"x": range(count), **columns}).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(ValueError, match=message):
        table.load(tmp_path / "t.csv", main="m", aux=["text", "big"], kinds=kinds)


def test_numbers_keep_their_rows(tmp_path):
    targets = load(tmp_path, table.Kinds(numbers=("grade",)), grade=[*GRADES[:-1], math.nan])
    assert torch.isnan(targets["grade"].values).tolist() == [False] * 58 + [True]
