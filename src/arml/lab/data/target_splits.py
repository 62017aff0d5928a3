"""Which examples are for training, which few of them keep the main label, which are held out."""

from typing import NamedTuple

import torch
from torch import Tensor

from arml.lab.data.targets import Rows, Target

HELD_OUT = 0.2
"""Share of the labelled rows in the test part, and share of the remaining ones in the validation part."""


class FewLabels(NamedTuple):
    """Indices of examples, int64, each part in ascending order."""

    main: Tensor
    """The few training rows whose main label may be used."""
    aux: Tensor
    """All training rows, including those in ``main``."""
    validation: Tensor
    """Rows with a main label, as in ``test``."""
    test: Tensor


def few_labels(main: Target, *, labels: float | None, seed: int, rows: Rows | None = None) -> FewLabels:
    """Splits examples such that few of them keep the label of ``main``; only ``seed`` decides.

    Every class is drawn in proportion to its share, as far as whole numbers allow. With the same seed, a larger set of
    labelled rows contains a smaller one, and the other parts stay the same.

    Args:
        main: The main task's target.
        labels: How many training rows keep their label, at least one per class. A number below 1 is a share of the
            training rows that have one, raised to one row per class if it would be fewer. ``None``: all of them.
        seed: Seeds the split.
        rows: The data set's own split. ``None``: a fifth of the rows with a main label becomes the test part, a fifth
            of the others the validation part. All rows without a main label are then training rows.

    >>> main = Target(torch.tensor([0, 1, 0, 1, 0, 1, 0, 1, 0, 1, torch.nan]), classes=("no", "yes"))
    >>> few_labels(main, labels=2, seed=0)
    FewLabels(main=tensor([2, 3]), aux=tensor([ 2,  3,  6,  7,  8,  9, 10]),
              validation=tensor([0, 5]), test=tensor([1, 4]))
    """
    _check(main, labels)
    generator = torch.Generator().manual_seed(seed)
    division = _draw_rows(main, generator) if rows is None else _drop_unlabelled(main, rows)
    labelled = division.train[main.present[division.train]]
    wanted = _count(main, labelled, labels)
    few = _order_by_shares(main, labelled, generator, every_class_first=True)[:wanted]
    return FewLabels(few.sort().values, *division)


def fold_labels(main: Target, *, labels: float | None, seed: int, folds: int, choosing: bool = False) -> FewLabels:
    """Splits examples by repeated cross-validation: seed s tests on fold s mod ``folds`` of repetition s // ``folds``.

    So the first ``folds`` seeds test every labelled row once, and even few labels in a file are all used for testing.
    Folds have the classes in their shares. Rows of the other folds, and all rows without a main label, are for
    training. ``labels`` counts all main labels that are used, for learning and for choosing a network.

    Args:
        main: The main task's target.
        labels: How many labels outside the test part are used; a number below 1 is a share of them; ``None``: all.
        seed: Chooses the fold, and draws the labels.
        folds: The number of test parts.
        choosing: Whether a fifth of the labels is for validation. If not, that part is empty.

    >>> main = Target(torch.tensor([0, 1, 0, 1, 0, 1, 0, 1, 0, 1, torch.nan]), classes=("no", "yes"))
    >>> [fold_labels(main, labels=4, seed=seed, folds=5).test.tolist() for seed in range(5)]
    [[1, 4], [0, 7], [5, 8], [3, 6], [2, 9]]
    """
    _check(main, labels)
    _check_folds(main, folds)
    repetition, fold = divmod(seed, folds)
    is_test = _fold_of(main, torch.Generator().manual_seed(repetition), folds) == fold
    generator = torch.Generator().manual_seed(seed)
    labelled = (main.present & ~is_test).nonzero().flatten()
    wanted = _count(main, labelled, labels)
    used = _order_by_shares(main, labelled, generator, every_class_first=True)[:wanted].sort().values
    num_validation = round(HELD_OUT * wanted) if choosing else 0
    order = _order_by_shares(main, used, generator)
    validation, few = order[:num_validation].sort().values, order[num_validation:].sort().values
    is_train = ~is_test
    is_train[validation] = False
    rows = FewLabels(few, is_train.nonzero().flatten(), validation, is_test.nonzero().flatten())
    return _check_parts(main, rows)


def _fold_of(main: Target, generator: torch.Generator, folds: int) -> Tensor:
    """The fold of every row, [N]; -1 for rows without a main label. Folds differ by at most one row."""
    labelled = main.present.nonzero().flatten()
    shuffled = labelled[torch.randperm(len(labelled), generator=generator)]
    by_class = shuffled[_groups(main, shuffled).argsort(stable=True)]
    found = torch.full((len(main.values),), -1)
    found[by_class] = torch.arange(len(by_class)) % folds
    return found


def _check_folds(main: Target, folds: int) -> None:
    """Refuses targets that would leave a test part with a single class, or with nothing to explain."""
    labelled = int(main.present.sum())
    if labelled < 2 * folds:
        raise ValueError(
            f"The main target has {labelled} labels. Cross-validation needs {2 * folds}, two for each of {folds} parts."
        )
    if main.is_numeric:
        return
    counts = main.values[main.present].long().bincount(minlength=len(main.classes)).tolist()
    few = [f"{name!r} ({count})" for name, count in zip(main.classes, counts, strict=True) if count < 2]
    if few:
        raise ValueError(
            f"Classes of the main target need at least two labels, one to learn from and one to test on. Too few: "
            f"{', '.join(few)}. Leave these cells empty, join classes, or, if they are amounts, use --as-numbers."
        )
    if labelled - max(counts) < folds:
        raise ValueError(
            f"All but {labelled - max(counts)} of the {labelled} main labels are the same, so one of {folds} test "
            "parts would hold a single class, and an error of 0 % would say nothing. Label more rows of rare classes."
        )


def _check_parts(main: Target, rows: FewLabels) -> FewLabels:
    """Refuses a training or validation part from which nothing can be learned or chosen."""
    parts = {"learning": rows.main, **({"choosing a network": rows.validation} if len(rows.validation) else {})}
    for purpose, part in parts.items():
        if len(main.values[part].unique()) < 2:
            raise ValueError(
                f"The {len(part)} main labels for {purpose} are all the same. Use more labels, or --select last, which "
                "holds none back."
            )
    return rows


def _check(main: Target, labels: float | None) -> None:
    if labels is not None and not (0 < labels < 1 or (labels >= 1 and float(labels).is_integer())):
        raise ValueError(
            f"`labels` should be a whole number from 1 on, or a share of the training rows between 0 and 1. "
            f"Got {labels}."
        )
    if not main.present.any():
        raise ValueError(f"The main target has no label in any of its {len(main.values)} rows.")


def _draw_rows(main: Target, generator: torch.Generator) -> Rows:
    """A fifth of the labelled rows for the test, a fifth of the rest for validation, everything else for training."""
    labelled = main.present.nonzero().flatten()
    order = _order_by_shares(main, labelled, generator)
    test, rest = order.tensor_split([round(HELD_OUT * len(order))])
    # Drawn again, so that the validation part has the classes in their shares as well.
    validation = _order_by_shares(main, rest.sort().values, generator)[: round(HELD_OUT * len(rest))]
    train = torch.ones(len(main.values), dtype=torch.bool)
    train[test] = train[validation] = False
    return _check_not_empty(Rows(train.nonzero().flatten(), validation.sort().values, test.sort().values))


def _drop_unlabelled(main: Target, rows: Rows) -> Rows:
    """The data set's own split, without validation and test rows that have no main label."""
    validation, test = (part[main.present[part]] for part in (rows.validation, rows.test))
    return _check_not_empty(Rows(*(part.sort().values for part in (rows.train, validation, test))))


def _check_not_empty(rows: Rows) -> Rows:
    empty = [name for name, part in rows._asdict().items() if not len(part)]
    if empty:
        raise ValueError(
            f"No row with a main label for: {', '.join(empty)}. Training, validation and test part need some each; "
            "without a division of its own, a data set needs at least 5 rows with a main label."
        )
    return rows


def _count(main: Target, labelled: Tensor, labels: float | None) -> int:
    """The number of labels to keep among the training rows that have one."""
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


def _order_by_shares(main: Target, rows: Tensor, generator: torch.Generator, every_class_first: bool = False) -> Tensor:
    """``rows`` in random order, such that every prefix holds the classes in their shares.

    Row s (from 0) of the n rows of a class has its place at (s + 1/2) / n. Like Sainte-Laguë's method with seats, this
    hands out places one by one, so that no class loses one when there are more to hand out.
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
    """The class of every row; all rows of a target that is a number are in one class."""
    return torch.zeros(len(rows)) if main.is_numeric else main.values[rows]
