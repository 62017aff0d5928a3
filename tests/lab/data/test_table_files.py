"""Which mark separates the columns of a file."""

import gzip

import pytest

from arml.lab.data.table import load
from arml.lab.data.table_files import TableRemark, read_table

SEPARATED = {
    "semicolons": ("t.csv", "m;x\n0;1\n1;2\n", ";"),
    "decimal commas": ("t.csv", "m;x\n0;1,5\n1;2,5\n", ";"),
    "commas in names": ("t.csv", 'm;price, net\n0;"1,5"\n1;2\n', ";"),
    "tabs": ("t.csv", "m\tx\n0\t1\n", "\t"),
    "bars": ("t.csv", "m|x\n0|1\n", "|"),
    "commas": ("t.tsv", "m,x\n0,1\n", ","),
}


@pytest.mark.parametrize("case", SEPARATED)
def test_the_separator_is_found_and_named(tmp_path, case):
    name, text, separator = SEPARATED[case]
    (tmp_path / name).write_text(text)
    table = read_table(tmp_path / name)
    assert table.separator == separator
    assert not table.is_usual
    assert table.frame.shape == (text.count("\n") - 1, 2)


USUAL = {
    "texts with marks": 'm,note\n0,"a;b;c"\n1,d|e\n2,f\n',
    "one column": "m\n0\n1\n",
    "names with marks": '"m;n",x\n0,1\n',
    "empty lines": "m,x\n\n0,1\n\n1,2\n",
}


@pytest.mark.parametrize("case", USUAL)
def test_the_usual_separator_needs_no_remark(tmp_path, case):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(USUAL[case].encode()))
    table = read_table(tmp_path / "t.csv.gz")
    assert table.separator == ","
    assert table.is_usual


def test_another_separator_is_named_where_the_table_is_used(tmp_path):
    (tmp_path / "t.csv").write_text("m;x\n0;1\n1;2\n")
    with pytest.warns(TableRemark, match=r"t\.csv: columns are separated by ';'"):
        load(tmp_path / "t.csv", main="m", aux=[])
