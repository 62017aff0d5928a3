"""Averages over seeds."""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from scipy.stats import t as student_t

OVERLAP_FORMULA = (
    "mean ± t(0.975, n - 1) s sqrt(1 / n + o), the 95 % interval of n seeds that divide the same rows again and again, "
    "corrected for their overlap as Nadeau and Bengio (2003) do; o = test rows / other rows; s has the divisor n - 1"
)
FORMULA = "mean ± t(0.975, n - 1) s / sqrt(n), the 95 % interval by Student's t over n seeds; s has the divisor n - 1"


class Summary(NamedTuple):
    """A mean over seeds and half the width of its 95 % interval."""

    mean: float
    half_width: float
    n: int

    def __str__(self) -> str:
        return self.format(2)

    def format(self, digits: int) -> str:
        """Mean and interval, with ``digits`` digits after the point.

        >>> Summary(0.0123, 0.0045, 3).format(3)
        '0.012 ± 0.004'
        """
        return f"{self.mean:.{digits}f}" + (f" ± {self.half_width:.{digits}f}" if self.n > 1 else "")

    @property
    def low(self) -> float:
        """The interval's lower end."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """The interval's upper end."""
        return self.mean + self.half_width

    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of 0; never with a single seed."""
        return self.n > 1 and abs(self.mean) > self.half_width


class Seeds(NamedTuple):
    """What is known about the seeds of a comparison before any error is seen."""

    overlap: float = 0.0
    """Test rows over other rows where seeds divide the same rows again and again; 0 for independent seeds."""
    resolution: float = 0.0
    """By how much one test example changes the error, in points; 0 if it changes gradually."""

    def least_spread(self, n: int) -> float:
        """The standard deviation if one of ``n`` seeds differed by one example: no spread seen is no less than that."""
        return self.resolution / math.sqrt(n)


INDEPENDENT = Seeds()


def summarise(values: Sequence[float], *, overlap: float = 0.0, least_spread: float = 0.0) -> Summary:
    r"""Mean and 95 % interval by Student's t, corrected where seeds divide the same rows again and again.

    .. math:: \bar v \pm t_{0.975,\, n - 1}\, s\, \sqrt{1 / n + o}

    Splits of the same rows share training and test rows, so their errors are correlated, and more splits do not narrow
    the interval without limit. With ``overlap`` o = test rows / other rows, this is the correction of Nadeau and
    Bengio, *Inference for the Generalization Error*, Machine Learning 52 (2003). Independent seeds have o = 0. A
    standard deviation s below ``least_spread`` counts as that.

    >>> print(summarise([1.0, 2.0, 3.0]), "|", summarise([1.0, 2.0, 3.0], overlap=0.25))
    2.00 ± 2.48 | 2.00 ± 3.29
    """
    n = len(values)
    mean = math.fsum(values) / n
    if n == 1:
        return Summary(mean, math.inf, n)
    s = max(least_spread, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1)))
    return Summary(mean, _quantile(n - 1) * s * math.sqrt(1 / n + overlap), n)


@cache  # curves need it at every point, and scipy is slow
def _quantile(freedom: int) -> float:
    return float(student_t.ppf(0.975, freedom))


def paired_difference(
    ours: Mapping[int, float], theirs: Mapping[int, float], *, overlap: float = 0.0
) -> Summary | None:
    """Ours minus theirs on the seeds both have; ``None`` if they share no seed. ``overlap`` is that of `summarise`.

    >>> print(paired_difference({0: 3.0, 1: 5.0, 2: 9.0}, {0: 2.0, 1: 4.0}))
    1.00 ± 0.00
    """
    found = paired_differences(ours, theirs)
    return summarise(found, overlap=overlap) if found else None


def paired_differences(ours: Mapping[int, float], theirs: Mapping[int, float]) -> list[float]:
    """Ours minus theirs on each seed that both have.

    >>> paired_differences({0: 3.0, 1: 5.0, 2: 9.0}, {0: 2.0, 1: 4.0})
    [1.0, 1.0]
    """
    return [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]
