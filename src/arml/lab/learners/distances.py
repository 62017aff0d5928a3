"""Distances between two predictions, one number per image; predictions are given as logits [B, classes]."""

from torch import Tensor


def squared_difference(logits_p: Tensor, logits_q: Tensor) -> Tensor:
    """mean_c (p_c - q_c)^2, [B]."""
    return (logits_p.softmax(1) - logits_q.softmax(1)).square().mean(1)


def kl(logits_p: Tensor, logits_q: Tensor) -> Tensor:
    """KL(p || q) = sum_c p_c (log p_c - log q_c), [B]."""
    return (logits_p.softmax(1) * (logits_p.log_softmax(1) - logits_q.log_softmax(1))).sum(1)


def entropy(logits: Tensor) -> Tensor:
    """-sum_c p_c log p_c, [B]."""
    return -(logits.softmax(1) * logits.log_softmax(1)).sum(1)
