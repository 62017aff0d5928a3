"""What simple models make of the same labels: the least that a network should beat."""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

MOST_PIXELS = 32
"""Height of the largest images that are used as they are."""
SHRUNK = 16
"""Height and width of larger ones, after averaging."""
MOST_LABELS = 10_000
"""With more labels, a linear model would take minutes, and no yardstick is needed."""
CHUNK = 1000
"""Examples that are prepared together."""


class Labelled(NamedTuple):
    """Examples with a label: these rows of all inputs and labels."""

    x: Tensor
    """uint8 images [N, C, H, W], or features."""
    y: Tensor
    """[N]."""
    rows: Tensor


def measure_yardsticks(few: Labelled, test: Labelled, *, numeric: bool = False) -> dict[str, float]:
    """Errors in % on the ``test`` examples of two models that know the ``few`` labels of the main task, by name.

    Classes: logistic regression on the inputs, and always answering the most frequent class of the test examples.
    Numbers: ridge regression, and always answering the mean; their error is the unexplained share of the variance,
    :math:`100 (1 - R^2)`. Both linear models have scikit-learn's own penalty. Pixels are scaled to [0, 1].

    The result is empty where a linear model makes no sense: one class only, no label, or more than ``MOST_LABELS``.

    >>> x, y = torch.tensor([[-2.0], [-1.0], [1.0], [3.0]]), torch.tensor([0, 0, 1, 1])
    >>> examples = Labelled(x, y, torch.arange(4))
    >>> measure_yardsticks(examples._replace(rows=torch.tensor([0, 2])), examples)
    {'logistic_regression': 0.0, 'most_frequent_class': 50.0}
    """
    known = few.y[few.rows]
    if not 2 <= len(known) <= MOST_LABELS or len(known.unique()) < 2:
        return {}
    answers, labels = _answer(_fit(few, numeric), test), test.y[test.rows].double()
    if numeric:
        squares = (answers - labels).square().mean() / labels.var(correction=0)
        return {"ridge_regression": 100 * float(squares), **measure_constant(test, numeric=True)}
    wrong = (answers != labels).double().mean()
    return {"logistic_regression": 100 * float(wrong), **measure_constant(test)}


def measure_constant(test: Labelled, *, numeric: bool = False) -> dict[str, float]:
    """The error in % on the ``test`` examples of always answering their most frequent class, or their mean."""
    if numeric:
        return {"mean": 100.0}
    labels = test.y[test.rows].long()
    return {"most_frequent_class": 100 * (1 - int(labels.bincount().max()) / len(labels))}


def _fit(few: Labelled, numeric: bool) -> Any:
    """A linear model of scikit-learn."""
    from sklearn.exceptions import ConvergenceWarning  # here, so that training alone does not load it
    from sklearn.linear_model import LogisticRegression, Ridge

    x = torch.cat([*_prepare(few)]).numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if numeric:
            return Ridge().fit(x, few.y[few.rows].double().numpy())
        return LogisticRegression(max_iter=200).fit(x, few.y[few.rows].long().numpy())


def _answer(model: Any, test: Labelled) -> Tensor:
    return torch.cat([torch.from_numpy(model.predict(part.numpy())).double() for part in _prepare(test)])


def _prepare(examples: Labelled) -> Iterator[Tensor]:
    """Inputs as flat rows of numbers, a chunk at a time."""
    for rows in examples.rows.split(CHUNK):
        x = examples.x[rows]
        x = x.float() / 255 if x.dtype == torch.uint8 else x.float()
        if x.ndim == 4 and x.shape[-1] > MOST_PIXELS:
            x = F.adaptive_avg_pool2d(x, SHRUNK)
        yield x.flatten(1)
