"""SVHN files, sound and not."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from lab.data.dataset_checks import check_photographs
from lab.data.original_formats import svhn_arrays, svhn_files
from scipy.io import savemat
from torch.testing import assert_close

from arml.lab.data import DataError, svhn

DATA = os.environ.get("ARML_DATA")


@pytest.mark.parametrize("below", ["svhn", "."])
def test_every_image_is_read_and_ten_becomes_zero(tmp_path, below):
    svhn_files(tmp_path / below)
    dataset = svhn.load(tmp_path)
    assert (dataset.name, dataset.num_classes) == ("svhn", 10)
    for seed, part in enumerate((dataset.train, dataset.test)):
        assert part.x.dtype == torch.uint8
        assert part.x.is_contiguous()
        assert part.y.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2]
        expected = svhn_arrays(seed)["X"]
        for i in range(12):
            assert_close(part.x[i], torch.from_numpy(expected[:, :, :, i]).permute(2, 0, 1))


def test_one_image_a_file_is_enough(tmp_path):
    svhn_files(tmp_path, rows=1)
    # MATLAB drops a last axis of length 1, scipy does not: both are written as the original would be.
    assert len(svhn.load(tmp_path).train.y) == 1


def test_the_folder_named_svhn_comes_first(tmp_path):
    svhn_files(tmp_path, rows=3)
    svhn_files(tmp_path / "svhn", rows=5)
    assert len(svhn.load(tmp_path).train.y) == 5


WRONG = {
    "shape": (lambda a: a | {"X": a["X"].transpose(3, 0, 1, 2)}, r"shape \(12, 32, 32, 3\)"),
    "dtype": (lambda a: a | {"X": a["X"].astype(np.float64)}, "float64"),
    "count": (lambda a: a | {"y": a["y"][:-1]}, "11 labels"),
    "zero": (lambda a: a | {"y": a["y"] - 1}, "12 labels from 0 to 9"),
    "no labels": (lambda a: a | {"y": a["y"][:0]}, "0 labels"),
    "variables": (lambda a: {"X": a["X"], "z": a["y"]}, "X, z only"),
    "text": (lambda a: a | {"X": "pictures"}, "shape"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_file_that_holds_something_else_is_named(tmp_path, case):
    folder = svhn_files(tmp_path / "svhn")
    change, message = WRONG[case]
    savemat(folder / "test_32x32.mat", change(svhn_arrays(0)))
    with pytest.raises(DataError, match=rf"test_32x32\.mat: expected .*{message}.*arml data fetch svhn.*ARML_DATA"):
        svhn.load(tmp_path)


@pytest.mark.parametrize("share", [0, 0.001, 0.005, 0.1, 0.5, 0.9, 0.999])
def test_a_file_that_is_cut_is_refused(tmp_path, share):
    path = svhn_files(tmp_path / "svhn") / "train_32x32.mat"
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(DataError, match=r"train_32x32\.mat"):
        svhn.load(tmp_path)


@pytest.mark.parametrize("place", [130, 200, 1000, 20_000])
def test_a_file_with_other_bytes_in_it_is_refused(tmp_path, place):
    path = svhn_files(tmp_path / "svhn") / "train_32x32.mat"
    whole = bytearray(path.read_bytes())
    whole[place : place + 40] = bytes(40)
    path.write_bytes(whole)
    with pytest.raises(DataError, match=r"train_32x32\.mat"):
        svhn.load(tmp_path)


@pytest.mark.parametrize("content", [b"<html>not found</html>" * 20, b"\x89HDF\r\n\x1a\n" + bytes(600), bytes(600)])
def test_another_file_under_the_name_is_refused(tmp_path, content):
    (svhn_files(tmp_path / "svhn") / "train_32x32.mat").write_bytes(content)
    with pytest.raises(DataError, match=r"train_32x32\.mat"):
        svhn.load(tmp_path)


def test_a_missing_file_is_named(tmp_path):
    (svhn_files(tmp_path / "svhn") / "test_32x32.mat").unlink()
    with pytest.raises(DataError, match=r"svhn.test_32x32\.mat.*found no such file"):
        svhn.load(tmp_path)
    with pytest.raises(DataError, match=r"svhn.train_32x32\.mat.*found no such file"):
        svhn.load(tmp_path / "nowhere")


@pytest.mark.skipif(DATA is None, reason="set ARML_DATA to a folder with svhn to read it")
def test_the_real_files_can_be_read():
    check_photographs(svhn.load(Path(DATA)))
