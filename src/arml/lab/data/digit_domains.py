"""Digits as a set of domains: real images that ship inside packages, and sources that mislead on purpose.

The target is ``digits``, scikit-learn's, scaled up from 8 x 8 to 16 x 16 pixels. The four sources are made of MNIST-5k,
cut to the inner 20 x 20 pixels and scaled down, and each has a quarter of its images to itself, 125 a class:
``mnist5k`` shows them as they are, ``inverted`` black for white, ``turned`` by a quarter turn, and ``misleading`` as
they are, with wrong labels.

A source that misleads says (y + s) mod 10 for the digit y, with s between 1 and 9: it is consistent, as a source with
other names for its classes would be, but never right. As s is another one for every source, no two of them agree.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from arml.lab.data import digits, mnist5k
from arml.lab.data.base import Dataset, Images
from arml.lab.data.domain_set import Domain, DomainSet, divided

SIZE = 16
"""Pixels of a side."""
MARGIN = 4
"""Pixels around MNIST's digits, which lie in a square of 20 x 20; scikit-learn's fill the whole image."""


class Source(NamedTuple):
    """How a source shows its images, and how wrong its labels are if it misleads."""

    seen: Callable[[Tensor], Tensor]
    shift: int
    """s."""


SOURCES = {
    "mnist5k": Source(lambda x: x, shift=3),
    "inverted": Source(lambda x: 255 - x, shift=7),
    "turned": Source(lambda x: x.rot90(dims=(2, 3)), shift=9),  # anticlockwise
    "misleading": Source(lambda x: x, shift=1),
}


def one_misleading() -> DomainSet:
    """Only the source ``misleading`` has wrong labels.

    >>> {name: len(domain.train) for name, domain in one_misleading().domains.items()}
    {'digits': 1294, 'mnist5k': 900, 'inverted': 900, 'turned': 900, 'misleading': 900}
    """
    return _domain_set("digits-one-misleading", misled=["misleading"])


def all_misleading() -> DomainSet:
    """All four sources have wrong labels: there is nothing to be gained from them, and much to be lost."""
    return _domain_set("digits-all-misleading", misled=[*SOURCES])


def resized(x: Tensor, size: int) -> Tensor:
    """Images [N, C, H, W], uint8, as [N, C, size, size]: bilinear, and smaller ones without jagged edges.

    >>> resized(torch.tensor([[0, 0], [100, 104]], dtype=torch.uint8).reshape(1, 1, 2, 2), 1).item()
    51
    """
    resampled = F.interpolate(x.float(), (size, size), mode="bilinear", antialias=True)
    return resampled.round().clamp(0, 255).to(torch.uint8)


def _domain_set(name: str, misled: list[str]) -> DomainSet:
    target, data = _resized(digits.load(), margin=0), _resized(mnist5k.load(), margin=MARGIN)
    quarters = zip(_dealt(data.train), _dealt(data.test), strict=True)
    domains = {"digits": _domain("digits", target.train, target.test)}
    for (source, (seen, shift)), parts in zip(SOURCES.items(), quarters, strict=True):
        wrong_by = shift if source in misled else 0
        train, test = (Images(seen(x), (y + wrong_by) % 10) for x, y in parts)
        domains[source] = _domain(source, train, test)
    return DomainSet(name, domains, classes=tuple("0123456789"))


def _resized(data: Dataset, margin: int) -> Dataset:
    inner = slice(margin, data.train.x.shape[-1] - margin)
    train, test = (Images(resized(x[..., inner, inner], SIZE), y) for x, y in (data.train, data.test))
    return data._replace(train=train, test=test)


def _domain(name: str, train: Images, test: Images) -> Domain:
    """Test images stay test images; a tenth of the others is for validation."""
    x, y = torch.cat([train.x, test.x]), torch.cat([train.y, test.y])
    return Domain(name, x, y, *divided(train.y), torch.arange(len(train.y), len(y)))


def _dealt(images: Images) -> list[Images]:
    """One part for every source: the images of each class dealt out in turn."""
    place_in_class = F.one_hot(images.y).cumsum(0).gather(1, images.y[:, None]).squeeze(1) - 1
    players = [place_in_class % len(SOURCES) == number for number in range(len(SOURCES))]
    return [Images(images.x[mine], images.y[mine]) for mine in players]
