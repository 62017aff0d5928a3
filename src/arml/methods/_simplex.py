"""Projections onto non-negative weights with a given sum."""

from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

Projection: TypeAlias = Literal["euclidean", "shift_clamp"]


def project_to_simplex(v: Tensor, total: float | Tensor) -> Tensor:
    r"""The closest point to ``v`` among vectors that are not negative and sum to ``total``.

    It is :math:`\max(v - \tau, 0)` with the one threshold :math:`\tau` that gives the right sum, found by sorting
    (Held, Wolfe and Crowder, 1974).

    >>> project_to_simplex(torch.tensor([2.5, 0.1]), total=2.0)
    tensor([2., 0.])
    >>> project_to_simplex(torch.tensor([1.0, 3.0, 2.0]), total=3.0)
    tensor([0., 2., 1.])
    """
    if v.ndim != 1 or not v.is_floating_point():
        raise ValueError(f"Expected a vector of floating point numbers. Got shape {tuple(v.shape)}, dtype {v.dtype}.")
    if not bool(torch.isfinite(v).all()) or not 0 <= float(total) < float("inf"):
        raise ValueError(
            f"Expected finite numbers and a total of at least 0. Got {v.tolist()} and total {float(total)}."
        )
    return _project(v, total) if len(v) else v.clone()


def _project(v: Tensor, total: float | Tensor) -> Tensor:
    descending = v.sort(descending=True).values
    # Working relative to the largest entry keeps the sums exact when v is far from the simplex.
    largest = descending[0]
    excess = (descending - largest).cumsum(0) - total
    ranks = torch.arange(1, len(v) + 1, dtype=v.dtype, device=v.device)
    thresholds = excess / ranks
    num_positive = int((descending - largest > thresholds).sum().clamp(min=1))
    return (v - largest - thresholds[num_positive - 1]).clamp(min=0)


def shift_and_clamp(v: Tensor, total: float | Tensor) -> Tensor:
    """The rule of the ARML release: shift to the right sum, then clamp at 0. The sum may end up above ``total``.

    >>> shift_and_clamp(torch.tensor([2.5, 0.1]), total=2.0)
    tensor([2.2000, 0.0000])
    """
    if not len(v):
        return v.clone()
    return (v + (total - v.sum()) / len(v)).clamp(min=0)


def choose_projection(name: Projection) -> Callable[[Tensor, float | Tensor], Tensor]:
    """The projection behind the setting ``projection``."""
    table: dict[str, Callable[[Tensor, float | Tensor], Tensor]] = {
        "euclidean": project_to_simplex,
        "shift_clamp": shift_and_clamp,
    }
    if name not in table:
        raise ValueError(f"Unknown projection {name!r}. Known: {', '.join(get_args(Projection))}.")
    return table[name]
