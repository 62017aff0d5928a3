"""A data set in memory, and the error for files that cannot become one."""

from pathlib import Path
from typing import NamedTuple

from torch import Tensor


class Images(NamedTuple):
    """Images with their labels."""

    x: Tensor
    """uint8, [N, C, H, W]."""
    y: Tensor
    """int64, [N]."""


class Dataset(NamedTuple):
    """Training images, and test images that are used once, at the end."""

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
