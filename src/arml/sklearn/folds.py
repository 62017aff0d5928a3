"""Cross-validation where some rows have no main label."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from sklearn.model_selection import BaseCrossValidator, KFold, StratifiedKFold
from sklearn.utils.multiclass import type_of_target

from arml.sklearn.labels import find_labels

Array: TypeAlias = "np.ndarray[Any, Any]"


class LabelledFold(BaseCrossValidator):  # type: ignore[misc]
    """Divides the rows that have a main label into folds; rows without one are always for training.

    Classes have their shares in every fold. Labels are missing as NaN or None, as in the estimators:

    >>> y = np.array([0, 1, np.nan, 0, 1, np.nan])
    >>> [test.tolist() for _, test in LabelledFold(2).split(np.zeros((6, 1)), y)]
    [[0, 1], [3, 4]]
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None) -> None:
        """As for scikit-learn's ``StratifiedKFold``.

        Args:
            n_splits: number of folds.
            shuffle: whether rows are divided at random.
            random_state: an integer makes a random division repeatable.
        """
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Array, Array]]:  # noqa: N803
        """Training and test rows of every fold."""
        del X, groups
        if y is None:
            raise ValueError("LabelledFold divides rows by their labels. Got no `y`.")
        here, known = find_labels(np.asarray(y))
        labelled = np.flatnonzero(here)
        if len(labelled) < self.n_splits:
            raise ValueError(f"{len(labelled)} of {len(here)} rows have a label, too few for {self.n_splits} folds.")
        is_number = type_of_target(known).startswith("continuous")
        kind = KFold if is_number else StratifiedKFold
        parts = kind(self.n_splits, shuffle=self.shuffle, random_state=self.random_state)
        for _, test in parts.split(labelled, known):
            yield np.setdiff1d(np.arange(len(here)), labelled[test]), labelled[test]

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:  # noqa: N803
        """The number of folds."""
        del X, y, groups
        return self.n_splits
