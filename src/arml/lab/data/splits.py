"""Which images are labelled, unlabelled, or held out for validation and test."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from arml.lab.data.base import Images


class Split(NamedTuple):
    """Indices of training images, int64, each part in ascending order."""

    labelled: Tensor
    unlabelled: Tensor
    validation: Tensor


class PaperSize(NamedTuple):
    """How the ARML paper splits a data set."""

    train: int
    """Training images before the split."""
    validation: int
    labels: int


PAPER_SIZES = {
    "cifar10": PaperSize(train=50_000, validation=5_000, labels=4_000),
    "svhn": PaperSize(train=73_257, validation=7_325, labels=1_000),
}
"""The paper says 65 932 training and 7 325 validation images for SVHN (its appendix misprints 65 392); the released
code, and the one it descends from, hold out 7 326."""


def validation_size(name: str, num_train: int) -> int:
    """The paper's number of validation images for the full data set, and the same share of a reduced copy.

    Data sets that the paper does not use get its share, a tenth.

    >>> validation_size("svhn", 73_257), validation_size("svhn", 8_000), validation_size("digits", 1_437)
    (7325, 800, 144)
    """
    paper = PAPER_SIZES.get(name, PaperSize(train=10, validation=1, labels=1))
    return round(num_train * paper.validation / paper.train)


def split(
    y: Tensor, num_classes: int, *, labels: int, validation: int, seed: int, include_labelled: bool = True
) -> Split:
    """Splits training images with the labels ``y`` ([N], 0 to ``num_classes`` - 1); only ``seed`` decides.

    The validation images are drawn first, uniformly from all images. ``labels`` of the remaining images become
    labelled: the same number from every class and, if ``labels`` is no multiple of ``num_classes``, one more from some
    classes, drawn by the seed. Fewer labels than classes therefore leave some classes without labels. With the same
    seed and validation size, a larger set of labelled images contains a smaller one if both sizes are multiples of
    ``num_classes``.

    Args:
        y: Labels of the training images.
        num_classes: Number of classes.
        labels: Number of labelled images, at least 1.
        validation: Number of validation images, at least 0.
        seed: Seeds the split.
        include_labelled: Whether the unlabelled pool contains the labelled images, as in Oliver et al. (2018), or not,
            as in the ARML release. It never contains validation images.

    >>> split(torch.tensor([0, 1, 0, 1, 0, 1]), 2, labels=2, validation=2, seed=0)
    Split(labelled=tensor([0, 3]), unlabelled=tensor([0, 1, 3, 4]), validation=tensor([2, 5]))
    """
    _check(y, num_classes, labels, validation)
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(y), generator=generator)
    extra = torch.randperm(num_classes, generator=generator)[: labels % num_classes].tolist()
    per_class = [labels // num_classes + (c in extra) for c in range(num_classes)]
    rest = order[validation:]
    labelled = take_per_class(y, rest, per_class)
    unlabelled = rest if include_labelled else rest[~torch.isin(rest, labelled)]
    return Split(*(part.sort().values for part in (labelled, unlabelled, order[:validation])))


def take_per_class(y: Tensor, order: Tensor, per_class: Sequence[int]) -> Tensor:
    """The first ``per_class[c]`` indices in ``order`` with label c, class after class."""
    chosen = [order[y[order] == c][:wanted] for c, wanted in enumerate(per_class)]
    for c, (indices, wanted) in enumerate(zip(chosen, per_class, strict=True)):
        if len(indices) < wanted:
            raise ValueError(
                f"Class {c} has {len(indices)} images to choose from, {wanted} should be labelled. "
                "Ask for fewer labels or fewer validation images."
            )
    return torch.cat(chosen)


def hold_out(images: Images, num_classes: int, *, share: float = 0.2, seed: int = 0) -> tuple[Images, Images]:
    """The training and the test part of a data set that comes in one piece.

    The test part holds about ``share`` of all images, the same number of every class, drawn by ``seed``. Both parts
    keep the order of ``images``.
    """
    per_class = round(share * len(images.y) / num_classes)
    order = torch.randperm(len(images.y), generator=torch.Generator().manual_seed(seed))
    test = torch.zeros(len(images.y), dtype=torch.bool)
    test[take_per_class(images.y, order, [per_class] * num_classes)] = True
    return Images(images.x[~test], images.y[~test]), Images(images.x[test], images.y[test])


def _check(y: Tensor, num_classes: int, labels: int, validation: int) -> None:
    if y.ndim != 1 or y.dtype != torch.int64 or not len(y):
        raise ValueError(f"`y` should be labels of shape [N], int64. Got shape {tuple(y.shape)}, {y.dtype}.")
    if int(y.min()) < 0 or int(y.max()) >= num_classes:
        raise ValueError(
            f"Labels should lie between 0 and {num_classes - 1} for {num_classes} classes. "
            f"Got {int(y.min())} to {int(y.max())}."
        )
    if not 0 <= validation < len(y):
        raise ValueError(
            f"`validation` should leave some of the {len(y)} training images: 0 to {len(y) - 1}. Got {validation}."
        )
    if not 1 <= labels <= len(y) - validation:
        raise ValueError(
            f"`labels` should be at least 1 and at most {len(y) - validation}, the training images that are not kept "
            f"for validation. Got {labels}."
        )
