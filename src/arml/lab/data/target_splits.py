"""Which examples are for training, which few of them have the main task's label, which are kept for judging."""

from typing import NamedTuple

import torch
from torch import Tensor

from arml.lab.data.targets import Rows, Target

HELD_OUT = 0.2
"""Share of the labelled rows that becomes the test part, and share of the rest that becomes the validation part."""


class FewLabels(NamedTuple):
    """Indices of examples, int64, each part in ascending order."""

    main: Tensor
    """The few training rows whose main label may be used."""
    aux: Tensor
    """All training rows, those in ``main`` among them."""
    validation: Tensor
    """All of them have a main label, as in ``test``."""
    test: Tensor


def few_labels(main: Target, *, labels: float | None, seed: int, rows: Rows | None = None) -> FewLabels:
    """Divides examples by ``seed`` alone, such that few of them keep the label of ``main``.

    Every class is drawn in its share, as far as whole numbers allow. With the same seed, more labels add to fewer
    labels, and the other parts stay the same.

    Args:
        main: The main task's target.
        labels: How many training rows keep their label, at least one of every class. A number below 1 is a share of the
            training rows that have one, and becomes one of every class where it would be fewer. ``None``: all of them.
        seed: Of the division.
        rows: The data set's own division. ``None``: a fifth of the rows with a main label becomes the test part, a
            fifth of the others the validation part. Rows without a main label are then all training rows.

    >>> main = Target(torch.tensor([0, 1, 0, 1, 0, 1, 0, 1, 0, 1, torch.nan]), classes=("no", "yes"))
    >>> few_labels(main, labels=2, seed=0)
    FewLabels(main=tensor([2, 3]), aux=tensor([ 2,  3,  6,  7,  8,  9, 10]),
              validation=tensor([0, 5]), test=tensor([1, 4]))
    """
    _check(main, labels)
    generator = torch.Generator().manual_seed(seed)
    division = _drawn(main, generator) if rows is None else _judged_by_labels(main, rows)
    labelled = division.train[main.present[division.train]]
    wanted = _count(main, labelled, labels)
    few = _in_shares(main, labelled, generator, every_class_first=True)[:wanted]
    return FewLabels(few.sort().values, *division)


def _check(main: Target, labels: float | None) -> None:
    if labels is not None and not (0 < labels < 1 or (labels >= 1 and float(labels).is_integer())):
        raise ValueError(
            f"`labels` should be a whole number from 1 on, or a share of the training rows between 0 and 1. "
            f"Got {labels}."
        )
    if not main.present.any():
        raise ValueError(f"The main target has no label in any of its {len(main.values)} rows.")


def _drawn(main: Target, generator: torch.Generator) -> Rows:
    """A fifth of the labelled rows for the test, a fifth of the rest for validation, everything else for training."""
    labelled = main.present.nonzero().flatten()
    order = _in_shares(main, labelled, generator)
    test, rest = order.tensor_split([round(HELD_OUT * len(order))])
    # Drawn again, so that the classes have their shares in the validation part for themselves.
    validation = _in_shares(main, rest.sort().values, generator)[: round(HELD_OUT * len(rest))]
    train = torch.ones(len(main.values), dtype=torch.bool)
    train[test] = train[validation] = False
    return _not_empty(Rows(train.nonzero().flatten(), validation.sort().values, test.sort().values))


def _judged_by_labels(main: Target, rows: Rows) -> Rows:
    """The data set's own division, without validation and test rows that have no main label."""
    validation, test = (part[main.present[part]] for part in (rows.validation, rows.test))
    return _not_empty(Rows(*(part.sort().values for part in (rows.train, validation, test))))


def _not_empty(rows: Rows) -> Rows:
    empty = [name for name, part in rows._asdict().items() if not len(part)]
    if empty:
        raise ValueError(
            f"No row with a main label for: {', '.join(empty)}. Training, validation and test part need some each; "
            "without a division of its own, a data set needs at least 5 rows with a main label."
        )
    return rows


def _count(main: Target, labelled: Tensor, labels: float | None) -> int:
    """How many labels to keep, given the training rows that have one."""
    classes = main.classes or ("a number",)
    groups = _groups(main, labelled)
    absent = [name for c, name in enumerate(classes) if not (groups == c).any()]
    if absent:
        raise ValueError(f"No training row with the main label {', '.join(map(repr, absent))}. Every class needs one.")
    if labels is None:
        return len(labelled)
    wanted = int(labels) if labels >= 1 else max(round(labels * len(labelled)), len(classes))
    if not len(classes) <= wanted <= len(labelled):
        raise ValueError(
            f"`labels` should be at least {len(classes)}, one for every class, and at most {len(labelled)}, the "
            f"training rows that have a main label. Got {labels}."
        )
    return wanted


def _in_shares(main: Target, rows: Tensor, generator: torch.Generator, every_class_first: bool = False) -> Tensor:
    """``rows`` in random order, such that every beginning of it holds the classes in their shares.

    The row that is number s (from 0) of the n rows of its class has its place at (s + 1/2) / n. This hands out places
    one by one, as Sainte-Laguë's method does with seats, so no class loses one when there are more to hand out.
    """
    shuffled = rows[torch.randperm(len(rows), generator=generator)]
    groups, places = _groups(main, shuffled), torch.empty(len(rows), dtype=torch.float64)
    for c in groups.unique():
        mine = (groups == c).nonzero().flatten()
        places[mine] = (torch.arange(len(mine), dtype=torch.float64) + 0.5) / len(mine)
        if every_class_first:
            places[mine[0]] = 0.0
    return shuffled[places.argsort(stable=True)]


def _groups(main: Target, rows: Tensor) -> Tensor:
    """The class of every row; a target that is a number has one for all."""
    return torch.zeros(len(rows)) if main.is_numeric else main.values[rows]
