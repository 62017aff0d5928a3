"""SVHN: 73 257 training and 26 032 test images of house numbers, 3 x 32 x 32 (Netzer et al., 2011)."""

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch

from arml.lab.data.base import DataError, Dataset, Images, file_error

FILES = ["train_32x32.mat", "test_32x32.mat"]

# What scipy raises for bytes that are not a MATLAB file, or only the beginning of one.
_UNREADABLE = (OSError, EOFError, ValueError, TypeError, LookupError, NotImplementedError, struct.error, zlib.error)


def load(root: Path) -> Dataset:
    """Reads ``train_32x32.mat`` and ``test_32x32.mat`` from ``root/svhn`` or from ``root``.

    The files may hold any number of images. Their label 10, the digit 0, becomes 0.
    """
    train, test = (_read(folder(root) / name) for name in FILES)
    return Dataset("svhn", train, test, num_classes=10)


def folder(root: Path) -> Path:
    """Where :func:`load` reads from: ``root/svhn``, unless only ``root`` holds the training images."""
    flat = (root / FILES[0]).exists() and not (root / "svhn" / FILES[0]).exists()
    return root if flat else root / "svhn"


def _read(path: Path) -> Images:
    variables = _variables(path)
    x, y = variables["X"], variables["y"].ravel()
    if x.shape[:3] != (32, 32, 3) or x.ndim != 4 or x.dtype != np.uint8 or not x.size:
        raise _error(path, "images X of shape (32, 32, 3, N), uint8", f"shape {x.shape}, {x.dtype}")
    if len(y) != x.shape[3] or not np.isin(y, np.arange(1, 11)).all():
        found = f"{len(y)} labels from {_range(y)}"
        raise _error(path, f"{x.shape[3]} labels y from 1 to 10, one for every image", found)
    images = torch.from_numpy(np.ascontiguousarray(x.transpose(3, 2, 0, 1)))
    return Images(images, torch.from_numpy(y.astype(np.int64) % 10))


def _variables(path: Path) -> dict[str, Any]:
    from scipy.io import loadmat, matlab  # here, so that reading CIFAR-10 does not need scipy

    expected = "a MATLAB 5 file with images X and labels y"
    if not path.is_file():
        raise _error(path, expected, "no such file")
    try:
        variables: dict[str, Any] = loadmat(path, variable_names=["X", "y"])
    except (*_UNREADABLE, matlab.MatReadError) as error:
        raise _error(path, expected, f"a damaged or different file ({error})") from error
    if not {"X", "y"} <= set(variables):
        names = ", ".join(name for name in variables if not name.startswith("__")) or "neither"
        raise _error(path, expected, f"{names} only")
    return variables


def _range(y: "np.ndarray[Any, Any]") -> str:
    return f"{y.min()} to {y.max()}" if y.size else "nothing to nothing"


def _error(path: Path, expected: str, found: str) -> DataError:
    return file_error("svhn", path, expected, found)
