"""The quality of answers, in numbers for one table."""

from math import isfinite

from torch import Tensor
from torch.nn import functional as F

from arml.lab.data.targets import Target


def metrics(target: Target, outputs: Tensor, labels: Tensor) -> dict[str, float]:
    r"""Percentages, and for numbers also the error in their own units, over the rows that have a label.

    For classes:

    - ``error``: the share of wrong answers;
    - ``average_precision``, ``auc``: how well rows of a class are ranked before others. Two classes are ranked by the
      logit of the second; with more, each class is ranked by its probability, and the mean is over the classes present;
    - ``majority_error``: the error of always answering the most frequent class of these labels.

    For numbers, with outputs and labels in the same units:

    - ``error``: the unexplained share of the variance, :math:`100 (1 - R^2)`;
    - ``rmse``: the root of the mean squared error;
    - ``majority_error``: 100, the error of always answering the mean.

    ``error`` is always there. For classes, a row with an output that is not finite counts as wrong. Rankings are left
    out if only one class is present or an output is not finite.

    >>> import torch
    >>> smiles = Target(torch.tensor([0.0, 1.0]), classes=("no", "yes"))
    >>> metrics(smiles, torch.tensor([[-1.0], [2.0], [3.0], [1.0]]), torch.tensor([0.0, 1.0, 0.0, float("nan")]))
    {'error': 33.3..., 'majority_error': 33.3..., 'average_precision': 50.0, 'auc': 50.0}
    >>> metrics(Target(torch.tensor([0.0, 4.0])), torch.tensor([[1.0], [3.0]]), torch.tensor([0.0, 4.0]))
    {'error': 25.0, 'majority_error': 100.0, 'rmse': 1.0}

    Args:
        target: Decides between classes and numbers.
        outputs: Logits, or numbers in the units of the labels, [N, target.num_outputs].
        labels: [N], NaN where missing.

    Raises:
        ValueError: No row has a label; or the labels of a number do not differ, or its answers are not finite.
    """
    if outputs.shape != (len(labels), target.num_outputs):
        raise ValueError(
            f"`outputs` should have the shape {[len(labels), target.num_outputs]} for {len(labels)} labels. "
            f"Got {list(outputs.shape)}."
        )
    present = ~labels.isnan()
    z, y = outputs[present].detach().cpu().double(), labels[present].cpu().double()
    if not len(y):
        raise ValueError(f"None of the {len(labels)} rows has a label. Judge answers by rows that have one.")
    return _numeric_metrics(z[:, 0], y) if target.is_numeric else _class_metrics(z, y.long())


def _numeric_metrics(z: Tensor, y: Tensor) -> dict[str, float]:
    if bool((y == y[0]).all()):
        raise ValueError(
            f"The {len(y)} labels of a number do not differ; the share of their variance that is explained needs at "
            "least two different ones. Use more rows with a label."
        )
    squares = float((z - y).square().mean())
    if not isfinite(squares):
        raise ValueError(
            f"Training diverged: {int((~z.isfinite()).sum())} of {len(z)} answers are not finite. Lower the step size."
        )
    return {"error": 100 * squares / float(y.var(correction=0)), "majority_error": 100.0, "rmse": squares**0.5}


def _class_metrics(z: Tensor, y: Tensor) -> dict[str, float]:
    answers = (z[:, 0] > 0).long() if z.shape[1] == 1 else z.argmax(dim=1)
    right = float(((answers == y) & z.isfinite().all(dim=1)).double().mean())
    majority = float(y.bincount().max()) / len(y)
    return {"error": 100 * (1 - right), "majority_error": 100 * (1 - majority), **_ranking_metrics(z, y)}


def _ranking_metrics(z: Tensor, y: Tensor) -> dict[str, float]:
    from sklearn.metrics import average_precision_score, roc_auc_score  # here, so that training alone does not load it

    present = y.unique().tolist()
    if len(present) < 2 or not bool(z.isfinite().all()):
        return {}
    rankings = [(y == 1, z[:, 0])] if z.shape[1] == 1 else [(y == c, F.softmax(z, dim=1)[:, c]) for c in present]
    scores = {"average_precision": average_precision_score, "auc": roc_auc_score}
    return {
        name: 100 * sum(float(score(is_class.numpy(), rank.numpy())) for is_class, rank in rankings) / len(rankings)
        for name, score in scores.items()
    }
