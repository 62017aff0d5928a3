"""What a data set is once it is in memory, and the error for files that cannot become one."""

from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from arml.lab.data.splits import balanced


class Images(NamedTuple):
    """Images with their labels."""

    x: Tensor
    """uint8, [N, C, H, W]."""
    y: Tensor
    """int64, [N]."""


class Dataset(NamedTuple):
    """Images to learn from, and images to be looked at once, at the end."""

    name: str
    train: Images
    test: Images
    num_classes: int


class DataError(ValueError):
    """A file of a data set is missing, damaged, or not what its name says."""


def file_error(name: str, path: Path, expected: str, found: str) -> DataError:
    """The error for a file of the data set ``name``: the file, what was expected, what was found, what to do.

    >>> print(file_error("svhn", Path("svhn/test_32x32.mat"), "a MATLAB 5 file", "no file"))
    svhn/test_32x32.mat: expected a MATLAB 5 file, found no file. Get it with `arml data fetch svhn`, or point
    --data-dir (or the environment variable ARML_DATA) at a folder that holds it.
    """
    return DataError(
        f"{path}: expected {expected}, found {found}. Get it with `arml data fetch {name}`, or point "
        "--data-dir (or the environment variable ARML_DATA) at a folder that holds it."
    )


def hold_out(images: Images, num_classes: int, *, share: float = 0.2, seed: int = 0) -> tuple[Images, Images]:
    """Training and test part of a data set that comes in one piece.

    The test part has equally many images of every class, together about ``share`` of all, drawn by ``seed``. Both
    parts keep the order of ``images``.
    """
    per_class = round(share * len(images.y) / num_classes)
    order = torch.randperm(len(images.y), generator=torch.Generator().manual_seed(seed))
    test = torch.zeros(len(images.y), dtype=torch.bool)
    test[balanced(images.y, order, [per_class] * num_classes)] = True
    return Images(images.x[~test], images.y[~test]), Images(images.x[test], images.y[test])
