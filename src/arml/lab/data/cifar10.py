"""CIFAR-10: 50 000 training and 10 000 test images of ten kinds of objects, 3 x 32 x 32 (Krizhevsky, 2009)."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from arml.lab.data._pickles import StoredArray, read_pickle
from arml.lab.data.base import DataError, Dataset, Images, file_error

PIXELS = 3 * 32 * 32
TRAIN = [f"data_batch_{i}" for i in range(1, 6)]
TEST = ["test_batch"]


def load(root: Path) -> Dataset:
    """Reads ``root/cifar-10-batches-py`` (pickles) or ``root/cifar-10-batches-bin`` (binary version).

    Files may hold any number of images. Pickles are read without running any code from them.
    """
    source = folder(root)
    read = _read_binary if source.name.endswith("-bin") else _read_pickle
    train, test = (_join([read(source / name) for name in names]) for names in (TRAIN, TEST))
    return Dataset("cifar10", train, test, num_classes=10)


def folder(root: Path) -> Path:
    """Where :func:`load` reads from: the pickles, unless only the binary version exists."""
    pickles, binary = root / "cifar-10-batches-py", root / "cifar-10-batches-bin"
    return binary if binary.is_dir() and not pickles.is_dir() else pickles


def _join(parts: list[Images]) -> Images:
    return Images(torch.cat([part.x for part in parts]), torch.cat([part.y for part in parts]))


def _read_pickle(path: Path) -> Images:
    expected = "a Python pickle of CIFAR-10 with `data` and `labels`"
    _check_exists(path, expected)
    try:
        batch = read_pickle(path)
    except ValueError as error:
        raise _error(path, expected, str(error)) from error
    if not isinstance(batch, dict):
        raise _error(path, expected, f"an object of type {type(batch).__name__}")
    named = {key.decode("latin1") if isinstance(key, bytes) else key: value for key, value in batch.items()}
    if not {"data", "labels"} <= set(named):
        raise _error(path, expected, f"only the keys {', '.join(map(str, named)) or '(none)'}")
    return _images(path, _pixels(path, named["data"]), _labels(path, named["labels"]))


def _pixels(path: Path, data: object) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    expected = f"`data` as bytes of shape [N, {PIXELS}]"
    if not isinstance(data, StoredArray):
        raise _error(path, expected, f"an object of type {type(data).__name__}")
    try:
        pixels = data.pixels()
    except ValueError as error:
        raise _error(path, expected, str(error)) from error
    if pixels.ndim != 2 or pixels.shape[1] != PIXELS or not len(pixels):
        raise _error(path, expected, f"shape {list(pixels.shape)}")
    return pixels


def _labels(path: Path, labels: object) -> "np.ndarray[Any, np.dtype[np.int64]]":
    if not isinstance(labels, list) or not all(isinstance(label, int) and 0 <= label < 10 for label in labels):
        raise _error(path, "`labels` as a list of numbers from 0 to 9", "something else")
    return np.array(labels, dtype=np.int64)


def _read_binary(without_suffix: Path) -> Images:
    path = without_suffix.with_suffix(".bin")
    expected = f"rows of one label and {PIXELS} pixels, {1 + PIXELS} bytes each"
    _check_exists(path, expected)
    stored = np.fromfile(path, dtype=np.uint8)
    if not stored.size or stored.size % (1 + PIXELS):
        raise _error(path, expected, f"{stored.size} bytes, which is not a whole number of rows")
    rows = stored.reshape(-1, 1 + PIXELS)
    if rows[:, 0].max() > 9:
        raise _error(path, "labels from 0 to 9", f"the label {rows[:, 0].max()}")
    return _images(path, rows[:, 1:], rows[:, 0].astype(np.int64))


def _images(
    path: Path, pixels: "np.ndarray[Any, np.dtype[np.uint8]]", labels: "np.ndarray[Any, np.dtype[np.int64]]"
) -> Images:
    if len(pixels) != len(labels):
        raise _error(path, "as many labels as images", f"{len(labels)} labels and {len(pixels)} images")
    return Images(torch.from_numpy(pixels.copy()).reshape(-1, 3, 32, 32), torch.from_numpy(labels))


def _check_exists(path: Path, expected: str) -> None:
    if not path.is_file():
        raise _error(path, expected, "no such file")


def _error(path: Path, expected: str, found: str) -> DataError:
    return file_error("cifar10", path, expected, found)
