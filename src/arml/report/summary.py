"""Averages over seeds."""

import math
from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import NamedTuple

from scipy.stats import t as student_t

FORMULA = "mean ± t(0.975, n - 1) s / sqrt(n), the 95 % interval by Student's t over n seeds; s has the divisor n - 1"


class Summary(NamedTuple):
    """A mean over seeds and half the width of its 95 % interval."""

    mean: float
    half_width: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.half_width:.2f}" if self.n > 1 else f"{self.mean:.2f}"

    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of 0; never with a single seed."""
        return self.n > 1 and abs(self.mean) > self.half_width


def summarise(values: Sequence[float]) -> Summary:
    """Mean and 95 % interval by Student's t.

    >>> print(summarise([1.0, 2.0, 3.0]))
    2.00 ± 2.48
    """
    n = len(values)
    half_width = float(student_t.ppf(0.975, n - 1)) * stdev(values) / math.sqrt(n) if n > 1 else math.inf
    return Summary(mean(values), half_width, n)


def paired_difference(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Summary | None:
    """Ours minus theirs on the seeds both have; ``None`` if there is none.

    >>> print(paired_difference({0: 3.0, 1: 5.0, 2: 9.0}, {0: 2.0, 1: 4.0}))
    1.00 ± 0.00
    """
    common = sorted(ours.keys() & theirs.keys())
    return summarise([ours[seed] - theirs[seed] for seed in common]) if common else None
