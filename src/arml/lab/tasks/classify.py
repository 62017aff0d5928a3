"""The main task. Its pass is the one that moves BatchNorm's running statistics."""

import torch
from torch import Tensor
from torch.nn import functional as F

from arml.lab.models.network import Network


def classify(network: Network, x: Tensor, y: Tensor) -> Tensor:
    """Mean cross-entropy of the class logits of ``x`` with labels ``y``."""
    return F.cross_entropy(network(x), y)


def classify_with_unlabelled(network: Network, x: Tensor, y: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """The loss of ``classify``, and the class logits of unlabelled images ``u``, from one pass over both.

    As in Oliver et al., BatchNorm's statistics are those of labelled and unlabelled images together.
    """
    logits = network(torch.cat([x, u]))
    return F.cross_entropy(logits[: len(x)], y), logits[len(x) :]
