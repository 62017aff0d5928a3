"""Adam for the few numbers that a method learns by gradient descent."""

from typing import NamedTuple

import torch
from torch import Tensor

MEAN_DECAY, SQUARE_DECAY = 0.9, 0.999


class Moments(NamedTuple):
    """Running mean and mean square of the slopes, and how many there have been; one of each per task."""

    mean: Tensor
    square: Tensor
    updates: Tensor


def begin_moments(like: Tensor) -> Moments:
    """No slope so far."""
    return Moments(torch.zeros_like(like), torch.zeros_like(like), torch.zeros_like(like))


def adam_direction(slope: Tensor, here: Tensor, before: Moments) -> tuple[Tensor, Moments]:
    r"""Adam's step for a step size of 1, and the new moments; tasks that are not ``here`` have a step of 0.

    .. math::
        m \leftarrow 0.9\, m + 0.1\, s, \quad v \leftarrow 0.999\, v + 0.001\, s^2, \quad
        \mathrm{step} = \frac{m / (1 - 0.9^n)}{\sqrt{v / (1 - 0.999^n)}}

    without a small number in the denominator, so a factor on all slopes changes nothing. Kingma and Ba, ICLR 2015.
    """
    mean = torch.where(here, MEAN_DECAY * before.mean + (1 - MEAN_DECAY) * slope, before.mean)
    square = torch.where(here, SQUARE_DECAY * before.square + (1 - SQUARE_DECAY) * slope.square(), before.square)
    updates = before.updates + here.to(before.updates)
    size = (square / (1 - SQUARE_DECAY**updates)).sqrt()
    step = mean / (1 - MEAN_DECAY**updates) / size
    return torch.where(here & (size > 0), step, torch.zeros_like(step)), Moments(mean, square, updates)
