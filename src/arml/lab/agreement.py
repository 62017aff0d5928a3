"""How the gradients of the auxiliary tasks relate to the main one: numbers for the record, no part of the training."""

from collections.abc import Mapping

import torch
from torch import Tensor

from arml.gradients import alignment, gram
from arml.gradients.shared import Shared

MOST_COSINES = 16
"""With more tasks than this, the norms that cosines need would take too many backward passes."""
TINY = 1e-30


def measure_agreement(main: Tensor, aux: Mapping[str, Tensor], shared: Shared) -> dict[str, dict[str, float]]:
    """``agreement`` <g_0, g_k> / <g_0, g_0> and, for few tasks, ``cosine`` <g_0, g_k> / (|g_0| |g_k|) of every task.

    >>> theta = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> measure_agreement(theta.sum(), {"double": 2 * theta.sum()}, [theta])
    {'agreement': {'double': 2.0}, 'cosine': {'double': 1.0}}
    """
    losses = [main, *aux.values()]
    if len(aux) > MOST_COSINES:
        products = alignment(losses, shared, torch.eye(1, len(losses)))[0]
        return {"agreement": _name(aux, products[1:] / products[0].clamp(min=TINY))}
    products = gram(losses, shared).double()
    squares = products.diagonal()
    cosines = products[0] / (squares[0] * squares).sqrt().clamp(min=TINY)
    return {
        "agreement": _name(aux, products[0, 1:] / squares[0].clamp(min=TINY)),
        "cosine": _name(aux, cosines[1:].clamp(-1, 1)),
    }


def _name(aux: Mapping[str, Tensor], values: Tensor) -> dict[str, float]:
    return dict(zip(aux, values.tolist(), strict=True))
