"""SVHN: 73 257 training and 26 032 test images of house numbers, 3 x 32 x 32 (Netzer et al., 2011)."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from arml.lab.data._matlab import read_matlab
from arml.lab.data.base import DataError, Dataset, Images, file_error

FILES = ["train_32x32.mat", "test_32x32.mat"]


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
    expected = "a MATLAB 5 file with images X and labels y"
    if not path.is_file():
        raise _error(path, expected, "no such file")
    try:
        variables = read_matlab(path, ("X", "y"))
    except (OSError, ValueError) as error:
        raise _error(path, expected, f"a damaged or different file ({error})") from error
    if not {"X", "y"} <= set(variables):
        raise _error(path, expected, f"{', '.join(variables) or 'neither'} only")
    return variables


def _range(y: "np.ndarray[Any, Any]") -> str:
    return f"{y.min()} to {y.max()}" if y.size else "nothing to nothing"


def _error(path: Path, expected: str, found: str) -> DataError:
    return file_error("svhn", path, expected, found)
