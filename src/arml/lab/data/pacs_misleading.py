"""PACS with a source that misleads on purpose: photographs as target, cartoons and paintings as sources.

``art_painting`` has every other painting of each class. ``misleading`` has the rest, with the class y labelled as
(y + 1) mod 7: consistent, like a source with other names for its classes, but never right.
"""

from pathlib import Path

import torch
from torch import Tensor

from arml.lab.data import pacs
from arml.lab.data.cache import ReportCount, report_nothing
from arml.lab.data.domain_set import Domain, DomainSet

TARGET = "photo"
SHIFT = 1
"""Added to the labels of the misleading source."""


def load(root: Path, cache: Path, *, size: int = 24, progress: ReportCount = report_nothing) -> DomainSet:
    """Reads PACS as :func:`arml.lab.data.pacs.load` does; sketches are left out."""
    dataset = pacs.load(root, cache, size=size, progress=progress)
    paintings = dataset.domains["art_painting"]
    first = _is_even_in_class(paintings.y)
    right = _take("art_painting", paintings, first)
    wrong = _take("misleading", paintings, ~first)
    wrong = wrong._replace(y=(wrong.y + SHIFT) % len(dataset.classes))
    domains = [dataset.domains[TARGET], dataset.domains["cartoon"], right, wrong]
    return DomainSet("pacs_misleading", {domain.name: domain for domain in domains}, dataset.classes)


def _is_even_in_class(y: Tensor) -> Tensor:
    """Whether an image is the first, third, fifth ... of its class.

    >>> _is_even_in_class(torch.tensor([0, 0, 1, 0, 1]))
    tensor([ True, False,  True,  True, False])
    """
    place = torch.nn.functional.one_hot(y).cumsum(0).gather(1, y[:, None]).squeeze(1) - 1
    return place % 2 == 0


def _take(name: str, domain: Domain, chosen: Tensor) -> Domain:
    """The chosen images; each stays a training, validation or test image."""
    rows = chosen.nonzero().flatten()
    train, validation, test = (
        torch.isin(rows, part).nonzero().flatten() for part in (domain.train, domain.validation, domain.test)
    )
    return Domain(name, domain.x[rows], domain.y[rows], train, validation, test)
