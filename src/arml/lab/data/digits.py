"""Digits: 1 797 grey images of 8 x 8 pixels that ship inside scikit-learn (UCI, Alpaydin and Kaynak, 1998)."""

import numpy as np
import torch

from arml.lab.data.base import Dataset, Images
from arml.lab.data.splits import hold_out


def load() -> Dataset:
    """1 437 training and 360 test images, [N, 1, 8, 8].

    The data set has no test part of its own: 36 images per class are held out, always the same ones. Values from 0
    to 16 become 0 to 255.

    >>> digits = load()
    >>> digits.train.x.shape, len(digits.test.y)
    (torch.Size([1437, 1, 8, 8]), 360)
    """
    from sklearn.datasets import load_digits  # here, so that reading CIFAR-10 does not need scikit-learn

    pixels, labels = load_digits(return_X_y=True)
    x = torch.from_numpy(np.rint(pixels * 255 / 16).astype(np.uint8)).reshape(-1, 1, 8, 8)
    train, test = hold_out(Images(x, torch.from_numpy(labels.astype(np.int64))), num_classes=10)
    return Dataset("digits", train, test, num_classes=10)
