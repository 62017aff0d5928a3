"""Weights that grow in the first part of training."""

import math


def ramp_up(step: int, max_weight: float, ramp_steps: int) -> float:
    """max_weight x exp(-5 (1 - min(step / ramp_steps, 1))^2).

    Consistency with an untrained network would teach it to give the same answer to every image. Oliver et al. use 0.4
    of all steps for the ramp; 0 steps: no ramp.

    >>> [round(ramp_up(step, 20.0, 100), 2) for step in (0, 50, 100, 200)]
    [0.13, 5.73, 20.0, 20.0]
    """
    progress = min(step / ramp_steps, 1.0) if ramp_steps > 0 else 1.0
    return max_weight * math.exp(-5 * (1 - progress) ** 2)
