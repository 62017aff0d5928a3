"""Tables that are larger than they look."""

import gzip
import os
from pathlib import Path

import pytest
from lab.data.original_formats import celeba_files

from arml.lab.data import DataError, celeba, limits
from arml.lab.data.limits import check_inflated_size
from arml.lab.data.table import load


@pytest.fixture
def bomb(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"0,1\n" * 10**6))
    return path


def test_a_few_kilobytes_that_become_megabytes_are_refused(bomb, monkeypatch):
    assert bomb.stat().st_size < 10_000
    check_inflated_size(bomb)
    monkeypatch.setenv("ARML_MOST_TABLE_BYTES", "3000000")
    with pytest.raises(
        DataError, match=r"a\.csv\.gz: expected a table of at most 3000000 bytes.*ARML_MOST_TABLE_BYTES"
    ):
        load(bomb, main="a", aux=["b"])


def test_a_large_plain_table_is_refused_too(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("a,b\n" + "0,1\n" * 10)
    monkeypatch.setenv("ARML_MOST_TABLE_BYTES", "20")
    with pytest.raises(DataError, match="at most 20 bytes"):
        load(tmp_path / "a.csv", main="a", aux=["b"])


def test_a_parquet_file_of_a_few_kilobytes_that_becomes_megabytes_is_refused(tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "a.parquet"
    pandas.DataFrame({"a": [0, 1] * 500_000, "b": 1.0}).to_parquet(path)
    assert path.stat().st_size < 1_000_000
    check_inflated_size(path)
    monkeypatch.setenv("ARML_MOST_TABLE_BYTES", "3000000")
    with pytest.raises(DataError, match=r"a\.parquet: expected a table of at most 3000000 bytes"):
        load(path, main="a", aux=["b"])


@pytest.mark.parametrize("content", [b"no gzip", gzip.compress(b"a,b\n" * 1000)[:-20]], ids=["other bytes", "cut"])
def test_a_damaged_file_is_named(tmp_path, content):
    (tmp_path / "a.csv.gz").write_bytes(content)
    check_inflated_size(tmp_path / "a.csv.gz")
    with pytest.raises(DataError, match=r"a\.csv\.gz: expected a table, found an empty, damaged or different file"):
        load(tmp_path / "a.csv.gz", main="a", aux=["b"])


@pytest.mark.parametrize("kind", ["pipe", "endless", "folder"])
@pytest.mark.parametrize("name", ["list_attr_celeba.txt", "list_eval_partition.txt"])
def test_only_regular_files_are_read_as_lists(tmp_path, name, kind):
    path = celeba_files(tmp_path / "celeba") / name
    path.unlink()
    {"pipe": os.mkfifo, "endless": lambda p: p.symlink_to("/dev/zero"), "folder": Path.mkdir}[kind](path)
    with pytest.raises(DataError, match=rf"{name}: expected .*no regular file"):
        celeba.lists(tmp_path)


def test_a_list_that_is_far_too_long_is_not_read(tmp_path, monkeypatch):
    celeba_files(tmp_path / "celeba")
    monkeypatch.setattr(limits, "MOST_LIST_BYTES", 100)
    with pytest.raises(DataError, match=r"list_attr_celeba\.txt: .*lists have at most 100"):
        celeba.lists(tmp_path)
