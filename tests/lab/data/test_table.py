"""Tables of all kinds: what becomes a class, what a number, what is refused."""

import gzip
import math
import os
import warnings
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest
import torch
from torch.testing import assert_close

from arml.lab.data import DataError, table
from arml.lab.data.table_files import TableRemark

CSV = """\
ill,smoker,grade,age,town,height,weight
yes,1,1,30,Bonn,1.5,50
no,0,2,41,Ulm,1.6,
,1,3,52,Bonn,1.7,70
yes,,2,63.5,Ulm,1.8,80
no,0,,,,1.9,90
"""


def written(folder: Path, text: str = CSV, name: str = "people.csv") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    return path


def columns(folder: Path, features: tuple[str, ...] = ("x",), **values: list) -> table.Examples:
    """A Parquet file with these columns and a target and a feature that are fine."""
    count = len(next(iter(values.values())))
    frame = pd.DataFrame({"main": [0, 1] * (count // 2) + [0] * (count % 2), "x": range(count), **values})
    frame.to_parquet(folder / "t.parquet")
    aux = [name for name in values if name not in features]
    return table.load(folder / "t.parquet", main="main", aux=aux, features=features)


def same(found: torch.Tensor, expected: list[float | None]) -> None:
    assert_close(found, torch.tensor([math.nan if v is None else float(v) for v in expected]), equal_nan=True)


@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz", "people.tsv", "people.parquet", "PEOPLE.CSV"])
def test_every_format_gives_the_same(tmp_path, name):
    path = written(tmp_path, CSV.replace(",", "\t") if name.endswith("tsv") else CSV, name)
    if name.endswith("parquet"):
        pd.read_csv(written(tmp_path)).to_parquet(path)
    examples = table.load(path, main="ill", aux=["smoker", "grade", "age"], kinds=table.Kinds(classes=("grade",)))
    assert examples.name.lower() == "people"
    assert examples.rows is None
    assert list(examples.targets) == ["ill", "smoker", "grade", "age"]
    classes = {name: target.classes for name, target in examples.targets.items()}
    assert classes == {"ill": ("no", "yes"), "smoker": ("0", "1"), "grade": ("1", "2", "3"), "age": ()}
    same(examples.targets["ill"].values, [1, 0, None, 1, 0])
    same(examples.targets["smoker"].values, [1, 0, 1, None, 0])
    same(examples.targets["grade"].values, [0, 1, 2, 1, None])
    same(examples.targets["age"].values, [30, 41, 52, 63.5, None])
    # Numbers first: height, weight with the mean in its gap; then Bonn, Ulm and no town.
    x = examples.inputs(torch.arange(5))
    assert x.dtype == torch.float32
    two = 2**0.5
    same(x[:, 0], [-two, -two / 2, 0, two / 2, two])
    gap = torch.tensor([50, 72.5, 70, 80, 90])
    assert_close(x[:, 1], (gap - 72.5) / gap.std(correction=0))
    assert x[:, 2:].tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_only_training_rows_decide_about_the_inputs(tmp_path):
    examples = table.load(written(tmp_path), main="ill", aux=["grade"], features=["town", "weight"])
    x = examples.inputs(torch.tensor([0, 2]))
    # Weights 50 and 70 in the training rows: mean 60, deviation 10. Both towns there are Bonn; Ulm is new.
    assert x.tolist() == [[-1, 1], [0, 0], [1, 1], [2, 0], [3, 0]]


@pytest.mark.parametrize("train", [[1], [0]])
def test_numbers_that_are_constant_or_missing_in_the_training_rows_are_zero_everywhere(tmp_path, train):
    """Row 1 has a height and no weight."""
    examples = table.load(written(tmp_path), main="ill", aux=["grade"], features=["weight", "height"])
    assert examples.inputs(torch.tensor(train)).tolist() == [[0, 0]] * 5


def test_a_gap_in_a_constant_column_does_not_make_it_vary(tmp_path):
    """The mean of three times 0.1 is not exactly 0.1."""
    path = written(tmp_path, "m,x,z\n0,0.1,1\n1,0.1,2\n0,0.1,3\n1,,4\n0,900,5\n")
    x = table.load(path, main="m", aux=[]).inputs(torch.arange(4))
    assert x[:, 0].tolist() == [0] * 5
    assert bool(x[:, 1].all())


KINDS = {
    "text": (["b", "a", "c", None], ("a", "b", "c"), [1, 0, 2, None]),
    "bool": ([True, False, True, False], ("False", "True"), [1, 0, 1, 0]),
    "bool with gaps": ([True, None, False, True], ("False", "True"), [1, None, 0, 1]),
    "two numbers": ([2.5, -1, 2.5, math.nan], ("-1", "2.5"), [1, 0, 1, None]),
    "whole numbers": ([7, 5, 9, 5] * 2, ("5", "7", "9"), [1, 0, 2, 0] * 2),
    "broken numbers": ([7.5, 5, 9, 5], (), [7.5, 5, 9, 5]),
    "20 numbers": ([*range(20)] * 2, tuple(map(str, range(20))), [*range(20)] * 2),
    "21 numbers": ([*range(21)], (), [*range(21)]),
    "nullable": (pd.array([3, None, 4, 3], dtype="Int64"), ("3", "4"), [0, None, 1, 0]),
    "categories": (pd.Categorical(["y", "x", None, "z"]), ("x", "y", "z"), [1, 0, None, 2]),
    "decimals": ([Decimal("1.5"), Decimal(2), None, Decimal(3)], (), [1.5, 2, None, 3]),
    "digits in text": (["10", "9", "9", "10"], ("10", "9"), [0, 1, 1, 0]),
    "few digits in text": (["10", "a", "b", None], ("10", "a", "b"), [0, 1, 2, None]),
    "categories of both": (pd.Categorical(["1", "2", "3+", "2"]), ("1", "2", "3+"), [0, 1, 2, 1]),
    "spaces": (["a", "a ", " b", " "], ("a", "b"), [0, 0, 1, None]),
}


@pytest.mark.parametrize("case", KINDS)
def test_what_is_in_a_column_decides_what_is_asked(tmp_path, case):
    values, classes, labels = KINDS[case]
    target = columns(tmp_path, column=values).targets["column"]
    assert target.classes == classes
    assert target.values.dtype == torch.float32
    same(target.values, labels)


def test_numbers_far_from_zero_keep_their_differences(tmp_path):
    seconds = [1.7e9, 1.7e9 + 1.5, 1.7e9 + 3, math.nan]
    values = columns(tmp_path, column=seconds).targets["column"].values
    assert values.dtype == torch.float64
    assert (values[:3] - 1.7e9).tolist() == [0, 1.5, 3]


def test_text_among_numbers_is_refused_by_default_too(tmp_path):
    """Even if every text is another one, so that it might pass for an identifier."""
    with pytest.raises(ValueError, match=r"Column 'age' holds numbers and also text such as 'old'"):
        table.load(written(tmp_path, "m,age,x\n0,30,1\n1,old,2\n1,41,3\n"), main="m", aux=[])


def test_columns_of_no_use_are_left_out_with_a_line_for_each_reason(tmp_path):
    frame = pd.DataFrame(
        {
            "main": [0, 1, 0, 1],
            "same": [3, 3, None, 3],
            "empty": [None] * 4,
            "id": ["a", "b", None, "d"],
            "Unnamed: 0": [0, 1, 2, 3],
            "x": [1, 2, 3, 4],
            "maybe": ["yes", None, "yes", "yes"],
            "list": [[1], [2], [3], [4]],
            "byte": [b"a", b"b", b"a", b"b"],
        }
    )
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.warns(TableRemark) as warned:
        examples = table.load(tmp_path / "t.parquet", main="main", aux=[])
    advice = "left out. --features names the columns to learn from."
    assert [str(warning.message) for warning in warned] == [
        f"Columns 'list', 'byte': neither numbers nor text, {advice}",
        f"Columns 'same', 'empty': one value only, {advice}",
        f"Column 'id': a different text in every row, {advice}",
        f"Column 'Unnamed: 0': no name, {advice}",
    ]
    assert examples.inputs(torch.arange(4)).shape == (4, 3)  # x; yes and missing


def test_a_line_speaks_for_all_columns_that_are_written_alike(tmp_path):
    names = [f"x{number}" for number in range(7)]
    rows = [";".join(["yes" if row % 2 else "no", *[f"{row},5"] * 7]) for row in range(9)]
    path = written(tmp_path, "\n".join([";".join(["m", *names]), *rows]))
    with pytest.warns(TableRemark) as warned:
        examples = table.load(path, main="m", aux=["x0"])
    assert [str(warning.message) for warning in warned] == [
        "people.csv: columns are separated by ';'.",
        "Columns 'x0', 'x1', 'x2', 'x3', 'x4' and 2 more hold numbers: '0,5' is read as 0.5.",
    ]
    assert examples.inputs(torch.arange(9)).shape == (9, 6)


def test_the_same_warning_comes_once_for_a_table(tmp_path):
    paths = [written(tmp_path, "m,x,same\n0,1,5\n1,2,5\n", name) for name in ("a.csv", "b.csv", "a.csv")]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        shapes = {table.load(path, main="m", aux=[]).inputs(torch.arange(2)).shape for path in paths}
    assert shapes == {(2, 1)}
    assert len(warned) == 2
    assert len({str(warning.message) for warning in warned}) == 1


def test_named_columns_bring_no_warning(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        examples = columns(tmp_path, ("x", "id"), id=["a", "b", "c", "d"])
    assert examples.inputs(torch.arange(4)).shape == (4, 5)


REFUSED_FEATURES = {
    "constant": ([3, 3, None, 3], "Feature 'f' has one value only"),
    "constant text": (["a"] * 4, "Feature 'f' has one value only"),
    "empty": ([None] * 4, "Feature 'f' has one value only"),
    "infinite": ([1.0, math.inf, 2.0, 3.0], "Column 'f' holds numbers that are infinite"),
    "too large": ([1.0, 1e300, 2.0, 3.0], "Column 'f' holds numbers that are infinite, or too large"),
    "lists": ([[1], [2], [3], [4]], "Column 'f' should hold numbers, text, .* Found: mixed.* with --features"),
    "bytes": ([b"a", b"b", b"a", b"b"], "Column 'f' should hold numbers, text, .* Found: bytes"),
    "numbers and text": (
        ["1", "odd", "2", "2"],
        r"Column 'f' holds numbers and also text such as 'odd'\. Leave such cells",
    ),
}


@pytest.mark.parametrize("case", REFUSED_FEATURES)
def test_features_of_no_use_are_refused_if_named(tmp_path, case):
    values, message = REFUSED_FEATURES[case]
    with pytest.raises(ValueError, match=message):
        columns(tmp_path, ("x", "f"), f=values)


REFUSED_TARGETS = {
    "constant": ([3, 3, None, 3], "Target 'column' should have at least two different values. Found only 3.0"),
    "constant text": (["a", None, "a", "a"], "Found only 'a'"),
    "empty": ([None] * 4, "Target 'column' .* Found no label at all"),
    "dates": ([datetime(2020, 1, 1)] * 4, "Target 'column' holds dates"),
    "lists": ([[1], [2], [1], [2]], "Column 'column' should hold numbers, text, .* Found: mixed.* with --features"),
    "numbers and text": (["1.5", "low", "high", "2e3"], "Column 'column' holds numbers and also text such as 'high'"),
    "identifiers": ([f"id{i}" for i in range(1001)], "Target 'column' has 1001 different texts"),
}


@pytest.mark.parametrize("case", REFUSED_TARGETS)
def test_targets_that_cannot_be_learnt_are_refused(tmp_path, case):
    values, message = REFUSED_TARGETS[case]
    with pytest.raises(ValueError, match=message):
        columns(tmp_path, column=values)


def test_a_main_target_without_a_label_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"Target 'm' .* Found no label at all"):
        table.load(written(tmp_path, "m,a,x\n,1,5\n,2,6\n"), main="m", aux=["a"])


NAMES = {
    "unknown": ({"main": "il", "aux": []}, r"Unknown column 'il'\. Did you mean 'ill'\? The table has: ill, smoker, g"),
    "strange": ({"main": "ill", "aux": ["zzz"]}, r"Unknown column 'zzz'\. The table has: ill, smoker"),
    "feature": ({"main": "ill", "aux": [], "features": ["Age"]}, r"Unknown column 'Age'\. Did you mean 'age'"),
    "other case": ({"main": "ILL", "aux": []}, r"Unknown column 'ILL'\. Did you mean 'ill'\?"),
    "main and aux": ({"main": "ill", "aux": ["grade", "ill"]}, "Given more than once: ill"),
    "aux twice": ({"main": "ill", "aux": ["grade", "grade"]}, "Given more than once: grade"),
    "aux and feature": ({"main": "ill", "aux": ["grade"], "features": ["grade"]}, "Given more than once: grade"),
    "feature twice": ({"main": "ill", "aux": [], "features": ["age", "age"]}, "Given more than once: age"),
}


@pytest.mark.parametrize("case", NAMES)
def test_wrong_names_of_columns_are_answered(tmp_path, case):
    given, message = NAMES[case]
    with pytest.raises(ValueError, match=message):
        table.load(written(tmp_path), **given)


def test_an_auxiliary_column_cannot_be_called_main_but_others_can(tmp_path):
    path = written(tmp_path, CSV.replace("height", "main"))
    with pytest.raises(ValueError, match=r"An auxiliary column is called 'main'.* Rename the column"):
        table.load(path, main="ill", aux=["grade", "main"])
    assert list(table.load(path, main="main", aux=["grade"], features=["age"]).targets) == ["main", "grade"]


def test_a_table_of_targets_alone_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"t\.csv: no column is left to predict from apart from the targets m, a"):
        table.load(written(tmp_path, "m,a\n0,1\n1,2\n", "t.csv"), main="m", aux=["a"])


FILES = {
    "empty": ("t.csv", b"", "found an empty, damaged or different file"),
    "names only": ("t.csv", b"m,x\n", "found no rows below the names m, x"),
    "longer line": ("t.csv", b"m,x\n0,1\n1,2,3\n", "found an empty, damaged or different file"),
    "all lines longer": ("t.csv", b"m,x\n0,1,7\n1,2,3\n", "found an empty, damaged or different file"),
    "bytes": ("t.csv", b"m,x\n\xff\xfe,1\n", "found another encoding; save it as UTF-8"),
    "bytes in a name": ("t.csv", b"m,gr\xf6\xdfe\n0,1\n", "found another encoding; save it as UTF-8"),
    "name twice": ("t.csv", b"a,m,x,m\n1,0,2,0\n", "different names of columns, found m more than once"),
    "name twice in gzip": ("t.csv.gz", gzip.compress(b"m,x,x\n1,0,2\n"), "found x more than once"),
    "name twice but for spaces": ("t.tsv", b"m\tx\t x \n1\t0\t2\n", "found x more than once"),
    "no gzip": ("t.csv.gz", b"m,x\n0,1\n1,2\n", "found an empty, damaged or different file"),
    "cut gzip": ("t.csv.gz", gzip.compress(b"m,x\n0,1\n1,2\n" * 99)[:-30], "found an empty, damaged or different file"),
    "no parquet": ("t.parquet", b"m,x\n0,1\n1,2\n", "found an empty, damaged or different file"),
    "empty parquet": ("t.parquet", b"", "found an empty, damaged or different file"),
    "other suffix": ("t.xlsx", b"", r"expected a table named \*\.csv, \*\.csv\.gz, \*\.tsv, \*\.parquet"),
}


@pytest.mark.parametrize("case", FILES)
def test_files_that_are_no_tables_are_refused(tmp_path, case):
    name, content, message = FILES[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"{name}: .*{message}") as error:
        table.load(tmp_path / name, main="m", aux=[])
    assert str(error.value).count("expected") == 1, "one error inside another"


def test_what_a_parser_says_is_on_one_line(tmp_path):
    with pytest.raises(DataError) as error:
        table.load(written(tmp_path, "m,x\n0,1\n1,2,3\n"), main="m", aux=[])
    assert "Expected 2 fields in line 3, saw 3)" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_parquet_index_with_a_name_is_a_column(tmp_path):
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame({"m": [0, 1, 0], "x": [5.0, 6, 7]}, index=[3, 1, 2])
    frame.to_parquet(path)
    assert table.load(path, main="m", aux=[]).inputs(torch.arange(3)).shape == (3, 1)
    frame.set_index("m").to_parquet(path)
    same(table.load(path, main="m", aux=[]).targets["m"].values, [0, 1, 0])
    frame.rename_axis("x").to_parquet(path)
    with pytest.raises(DataError, match="found x more than once"):
        table.load(path, main="m", aux=[])


def test_spaces_around_names_and_cells_do_not_count(tmp_path):
    text = ' m , "a" ,x\nyes , 1.5, u\nno, 2.5 ,u \nyes,  , v\n no, 3.5,v\n,4.5,\n'
    examples = table.load(written(tmp_path, text), main="m", aux=["a"])
    assert examples.targets["m"].classes == ("no", "yes")
    same(examples.targets["m"].values, [1, 0, 1, 0, None])
    same(examples.targets["a"].values, [1.5, 2.5, None, 3.5, 4.5])
    assert examples.inputs(torch.arange(5)).tolist() == [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]]


def test_columns_without_a_name_may_be_many(tmp_path):
    path = written(tmp_path, ",m,x,\n0,0,5,1\n1,1,6,2\n")
    with pytest.warns(TableRemark, match="Columns 'Unnamed: 0', 'Unnamed: 3': no name"):
        assert table.load(path, main="m", aux=[]).inputs(torch.arange(2)).shape == (2, 1)


def test_cells_are_not_dropped_even_if_warnings_are(tmp_path):
    path = written(tmp_path, "m,x\n0,1,7\n1,2,3\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(DataError, match="found an empty, damaged or different file"):
            table.load(path, main="m", aux=[])


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"t\.csv: expected a table, found no such file"):
        table.load(tmp_path / "t.csv", main="m", aux=[])


def test_a_comma_at_the_end_of_every_line_shifts_nothing(tmp_path):
    path = written(tmp_path, "m,a,x\n0,5.5,1,\n1,6.5,2,\n1,7.5,4,\n")
    targets = table.load(path, main="m", aux=["a"]).targets
    same(targets["m"].values, [0, 1, 1])
    same(targets["a"].values, [5.5, 6.5, 7.5])


def test_names_of_columns_follow_a_changed_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    assert table.column_names(path) == ("a", "b")
    path.write_text("a,c\n1,2\n")
    os.utime(path, ns=(1, 1))
    assert table.column_names(path) == ("a", "c")
