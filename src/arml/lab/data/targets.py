"""Questions about an example: yes or no, which class, how much. Labels may be missing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Target:
    """One column of labels.

    >>> smiles = Target(torch.tensor([0.0, 1.0, float("nan")]), classes=("no", "yes"))
    >>> smiles.is_binary, smiles.num_outputs, smiles.present.tolist()
    (True, 1, [True, True, False])
    """

    values: Tensor
    """float, [N]: the index of the class in float32, or the number itself in the precision that its differences need;
    NaN where the label is missing."""
    classes: tuple[str, ...] = ()
    """Names of the classes in the order of their indices; empty for a target that is a number."""

    @property
    def is_numeric(self) -> bool:
        """Whether the target is a number rather than a class."""
        return not self.classes

    @property
    def is_binary(self) -> bool:
        """Whether there are two classes, told apart by one logit."""
        return len(self.classes) == 2

    @property
    def num_outputs(self) -> int:
        """Number of outputs that a head for this target needs: a logit, a number, or a logit per class."""
        return len(self.classes) if len(self.classes) > 2 else 1

    @property
    def present(self) -> Tensor:
        """Which rows have a label, bool, [N]."""
        return ~torch.isnan(self.values)


class Rows(NamedTuple):
    """Examples for training, validation and test: indices, int64, ascending."""

    train: Tensor
    validation: Tensor
    test: Tensor


class Examples(NamedTuple):
    """Examples with several targets each, one of them for the main task."""

    name: str
    targets: dict[str, Target]
    inputs: Callable[[Tensor], Tensor]
    """Training rows -> inputs of all rows, [N, ...]: uint8 images, or features standardised on the training rows."""
    rows: Rows | None = None
    """The data set's own split; ``None`` if it has none and the seed draws one."""
