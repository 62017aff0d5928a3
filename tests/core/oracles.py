"""Slow and obvious twins of what the library computes."""

import torch
from core.zoo import Case
from torch import Tensor


def jacobian_one_backward_at_a_time(case: Case, seed: int) -> Tensor:
    """[1 + K, P]: a fresh forward and a plain ``backward()`` for every task."""
    rows = []
    for i in range(len(case.losses())):
        case.model.zero_grad()
        torch.manual_seed(seed)
        case.losses()[i].backward()
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in case.trainable()]
        rows.append(torch.cat([g.double().flatten() for g in grads]))
    case.model.zero_grad()
    return torch.stack(rows)


def closest_on_simplex_by_bisection(v: Tensor, total: float) -> Tensor:
    """max(v - tau, 0) with tau found by halving an interval that holds it."""
    low, high = float(v.min()) - total - 1, float(v.max())
    for _ in range(80):  # beyond the precision of float64
        middle = (low + high) / 2
        if (v - middle).clamp(min=0).sum() > total:
            low = middle
        else:
            high = middle
    return (v - (low + high) / 2).clamp(min=0)
