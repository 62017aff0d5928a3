"""Many targets of an example at once, answered by one head that holds all outputs."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from arml.lab.data.targets import Target


class Attributes:
    r"""Losses of K targets: one matrix for all binary ones, one for all numbers, and one per target with more classes.

    With the output z and the label y of a row: a binary target has the cross-entropy of one logit,
    :math:`-y \log \sigma(z) - (1 - y) \log \sigma(-z)`; more classes have the cross-entropy of a logit each; a number
    has :math:`(z - y)^2`. Numbers are standardised by their mean and standard deviation over the training rows, so that
    always answering the mean costs 1, near the ln 2 of a binary target about which nothing is known.

    >>> from math import nan
    >>> smiles = Target(torch.tensor([0.0, 1.0, 1.0]), classes=("no", "yes"))
    >>> age = Target(torch.tensor([20.0, 40.0, nan]))
    >>> attributes = Attributes({"age": age, "smiles": smiles}, rows=torch.arange(3))
    >>> attributes.losses(torch.zeros(3, attributes.num_outputs), attributes.labels)
    {'age': tensor(1.), 'smiles': tensor(0.6931)}
    """

    def __init__(self, targets: Mapping[str, Target], rows: Tensor) -> None:
        """Takes the units of numbers from the training rows.

        Args:
            targets: K targets of the same N examples, by name.
            rows: Training rows, int64. Every target has at least two different labels among them.
        """
        for name, target in targets.items():
            _check_classes(name, target)
            _check_labels(name, target, rows)
        self.targets = dict(targets)
        self._groups = _group_targets(self.targets)
        self._sizes = [sum(self.targets[name].num_outputs for name in group) for group in self._groups]
        self._order = [name for group in self._groups for name in group]
        self._columns = [list(self.targets).index(name) for name in self._order]
        units = [_units(self.targets[name], rows) for name in self._order]
        self._mean, self._std = (torch.tensor(part, dtype=torch.float64) for part in zip(*units, strict=True))
        self._moved: dict[tuple[torch.device, torch.dtype], _Constants] = {}

    @property
    def num_outputs(self) -> int:
        """The number of outputs that the head needs."""
        return sum(self._sizes)

    @property
    def labels(self) -> Tensor:
        """All labels in their own units, [N, K] in the order of ``targets``, NaN where missing.

        They are float32, or float64 if a target is.
        """
        return torch.stack([target.values for target in self.targets.values()], dim=1)

    def losses(self, outputs: Tensor, labels: Tensor, counts: Tensor | None = None) -> dict[str, Tensor]:
        """The mean loss of every target over the rows that have its label; targets without any are left out.

        Args:
            outputs: Outputs of the head, [B, num_outputs].
            labels: Rows of :attr:`labels`, [B, K].
            counts: How many rows have each label, [K] on the CPU, where it is known: then nothing waits for the device.
                Of several processes that share a batch, each has the mean number of rows per process.
        """
        _check_shape("outputs", outputs, self.num_outputs)
        _check_shape("labels", labels, len(self.targets))
        if len(labels) != len(outputs):
            raise ValueError(f"There are {len(labels)} rows of labels for {len(outputs)} rows of outputs.")
        # In the labels' own precision: far from 0, close numbers may become equal in the precision of the outputs.
        columns, mean, std = self._constants(labels)
        standard = (labels[:, columns] - mean) / std
        present, known = _fill_missing(standard.to(outputs))
        widths = [len(group) for group in self._groups]
        parts = zip(self._groups, outputs.split(self._sizes, dim=1), known.split(widths, dim=1), strict=True)
        rows = torch.cat([_row_losses(self.targets[group[0]], z, y) for group, z, y in parts], dim=1)
        number = present.sum(dim=0) if counts is None else _copy_to(rows, counts[self._columns])
        held = (present.any(dim=0) if counts is None else counts[self._columns] > 0).tolist()
        losses = dict(zip(self._order, _means(rows, present, number), strict=True))
        here = dict(zip(self._order, held, strict=True))
        return {name: losses[name] for name in self.targets if here[name]}

    def _constants(self, labels: Tensor) -> "_Constants":
        """Columns, means and standard deviations where the labels are; copied once."""
        place = (labels.device, labels.dtype)
        if place not in self._moved:
            columns = torch.tensor(self._columns, device=labels.device)
            self._moved[place] = _Constants(columns, self._mean.to(labels), self._std.to(labels))
        return self._moved[place]

    def answers(self, outputs: Tensor) -> dict[str, Tensor]:
        """The head's answer for every target, [B, target.num_outputs]: logits, or numbers in their own units.

        Each is at least as precise as the labels of its target.
        """
        _check_shape("outputs", outputs, self.num_outputs)
        sizes = [self.targets[name].num_outputs for name in self._order]
        precise = [torch.promote_types(outputs.dtype, self.targets[name].values.dtype) for name in self._order]
        own = zip(outputs.split(sizes, dim=1), precise, self._mean.tolist(), self._std.tolist(), strict=True)
        answers = dict(zip(self._order, (z.to(dtype) * std + mean for z, dtype, mean, std in own), strict=True))
        return {name: answers[name] for name in self.targets}


class _Constants(NamedTuple):
    columns: Tensor
    mean: Tensor
    std: Tensor


def _row_losses(target: Target, outputs: Tensor, labels: Tensor) -> Tensor:
    """Losses [B, k] of k targets of this kind; k is 1 for more than two classes."""
    if target.is_binary:
        return F.binary_cross_entropy_with_logits(outputs, labels, reduction="none")
    if target.is_numeric:
        return (outputs - labels).square()
    return F.cross_entropy(outputs, labels[:, 0].long(), reduction="none").unsqueeze(1)


def _fill_missing(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Which labels are present, and the labels with 0 in place of missing ones.

    NaN must be gone before a loss is computed: if it is masked afterwards, it still reaches the gradient.
    """
    present = ~labels.isnan()
    return present, torch.where(present, labels, torch.zeros_like(labels))


def _means(rows: Tensor, present: Tensor, number: Tensor) -> Tensor:
    """The sum of every column over the rows that are present, divided by their ``number``, [K]; 0 if that is 0."""
    total = torch.where(present, rows, torch.zeros_like(rows)).sum(dim=0)
    return total / torch.where(number > 0, number, torch.ones_like(number))


def _copy_to(like: Tensor, values: Tensor) -> Tensor:
    """``values`` [K] in the precision and on the device of ``like``, without waiting for it."""
    return values.to(like.device, like.dtype, non_blocking=True)


def _group_targets(targets: Mapping[str, Target]) -> list[list[str]]:
    """Names of targets that are computed together: all binary ones, all numbers, and each of the others alone."""
    if not targets:
        raise ValueError("`targets` should hold at least one target. Got none.")
    binary = [name for name, target in targets.items() if target.is_binary]
    numeric = [name for name, target in targets.items() if target.is_numeric]
    others = [[name] for name in targets if name not in {*binary, *numeric}]
    return [group for group in (binary, numeric, *others) if group]


def _units(target: Target, rows: Tensor) -> tuple[float, float]:
    """Mean and standard deviation of a number over the training rows; 0 and 1 for classes."""
    if not target.is_numeric:
        return 0.0, 1.0
    values = target.values[rows][target.present[rows]].double()
    return float(values.mean()), float(values.std(correction=0))


def _check_labels(name: str, target: Target, rows: Tensor) -> None:
    """Refuses a target without labels, which has no loss, or with a single one, which leaves nothing to learn."""
    known = target.values[rows][target.present[rows]]
    if not len(known):
        raise ValueError(f"Target {name!r} has no label among the {len(rows)} training rows. Leave it out.")
    if len(known.unique()) < 2:
        only = f"{float(known[0]):g}" if target.is_numeric else repr(target.classes[int(known[0])])
        raise ValueError(
            f"Target {name!r} has one and the same label, {only}, wherever it has one among the {len(rows)} training "
            "rows. Leave it out, or train on more rows."
        )


def _check_classes(name: str, target: Target) -> None:
    if target.is_numeric:
        return
    known = target.values[target.present]
    if len(target.classes) < 2 or not bool(torch.isin(known, torch.arange(len(target.classes)).to(known)).all()):
        raise ValueError(
            f"Target {name!r} should have at least two classes and labels from 0 to their number minus 1. Got the "
            f"classes {', '.join(target.classes)} and the labels {known.unique().tolist()}."
        )


def _check_shape(what: str, given: Tensor, width: int) -> None:
    if given.ndim != 2 or given.shape[1] != width:
        raise ValueError(f"`{what}` should have the shape [B, {width}]. Got {list(given.shape)}.")
