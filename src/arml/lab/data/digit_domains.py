"""Digits as a set of domains: real images that ship inside packages, and sources that mislead on purpose.

The target is scikit-learn's ``digits``, scaled up from 8 x 8 to 16 x 16 pixels. The four sources come from MNIST-5k,
cut to the inner 20 x 20 pixels and scaled down. Each has its own quarter of the images, 125 per class: ``mnist5k``
shows them unchanged, ``inverted`` swaps black and white, ``turned`` makes a quarter turn, and ``misleading`` shows them
unchanged with wrong labels.

A misleading source labels the digit y as (y + s) mod 10, with s between 1 and 9. It is consistent, like a source with
other names for its classes, but never right. Every source has its own s, so that no two misleading sources agree.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from arml.lab.data import digits, mnist5k
from arml.lab.data.base import Dataset, Images
from arml.lab.data.domain_set import Domain, DomainSet, divide

SIZE = 16
"""Height and width in pixels."""
MARGIN = 4
"""Pixels around MNIST's digits, which fill a square of 20 x 20; scikit-learn's fill the whole image."""


class DigitSource(NamedTuple):
    """How a source changes its images, and its labels if it misleads."""

    show: Callable[[Tensor], Tensor]
    shift: int
    """s, added to the labels of a misleading source."""


SOURCES = {
    "mnist5k": DigitSource(lambda x: x, shift=3),
    "inverted": DigitSource(lambda x: 255 - x, shift=7),
    "turned": DigitSource(lambda x: x.rot90(dims=(2, 3)), shift=9),  # anticlockwise
    "misleading": DigitSource(lambda x: x, shift=1),
}


def load_one_misleading() -> DomainSet:
    """Only the source ``misleading`` has wrong labels.

    >>> {name: len(domain.train) for name, domain in load_one_misleading().domains.items()}
    {'digits': 1294, 'mnist5k': 900, 'inverted': 900, 'turned': 900, 'misleading': 900}
    """
    return _domain_set("digits-one-misleading", misled=["misleading"])


def load_all_misleading() -> DomainSet:
    """All four sources have wrong labels: nothing can be gained from them, and much can be lost."""
    return _domain_set("digits-all-misleading", misled=[*SOURCES])


def resize(x: Tensor, size: int) -> Tensor:
    """Resizes images [N, C, H, W], uint8, to [N, C, size, size]: bilinear, without jagged edges when shrinking.

    >>> resize(torch.tensor([[0, 0], [100, 104]], dtype=torch.uint8).reshape(1, 1, 2, 2), 1).item()
    51
    """
    resampled = F.interpolate(x.float(), (size, size), mode="bilinear", antialias=True)
    return resampled.round().clamp(0, 255).to(torch.uint8)


def _domain_set(name: str, misled: list[str]) -> DomainSet:
    target, data = _resize_dataset(digits.load(), margin=0), _resize_dataset(mnist5k.load(), margin=MARGIN)
    quarters = zip(_deal(data.train), _deal(data.test), strict=True)
    domains = {"digits": _domain("digits", target.train, target.test)}
    for (source, (show, shift)), parts in zip(SOURCES.items(), quarters, strict=True):
        wrong_by = shift if source in misled else 0
        train, test = (Images(show(x), (y + wrong_by) % 10) for x, y in parts)
        domains[source] = _domain(source, train, test)
    return DomainSet(name, domains, classes=tuple("0123456789"))


def _resize_dataset(data: Dataset, margin: int) -> Dataset:
    inner = slice(margin, data.train.x.shape[-1] - margin)
    train, test = (Images(resize(x[..., inner, inner], SIZE), y) for x, y in (data.train, data.test))
    return data._replace(train=train, test=test)


def _domain(name: str, train: Images, test: Images) -> Domain:
    """One domain: test images stay test images, and a tenth of the others is for validation."""
    x, y = torch.cat([train.x, test.x]), torch.cat([train.y, test.y])
    return Domain(name, x, y, *divide(train.y), torch.arange(len(train.y), len(y)))


def _deal(images: Images) -> list[Images]:
    """Deals out the images of each class in turn, one part per source."""
    place_in_class = F.one_hot(images.y).cumsum(0).gather(1, images.y[:, None]).squeeze(1) - 1
    players = [place_in_class % len(SOURCES) == number for number in range(len(SOURCES))]
    return [Images(images.x[mine], images.y[mine]) for mine in players]
