"""Which of two paired shortfalls is less, such as test errors: decisions that never contradict their intervals.

For n paired differences with mean d and standard deviation s, and a family of m such comparisons, whose standard error
is s sqrt(1 / n + o) with the overlap o of :func:`arml.report.data.summary.summarise`. Errors on r test rows come in
steps of 100 / r points, so that all differences may be equal by chance; s counts as at least 100 / r / sqrt(n), as if
one seed differed by one row:

- *less* or *more*: the two-sided t test of d = 0 rejects after Holm's correction over the family;
- *same*: |d| < MARGIN is established, that is, the 95 % interval lies inside the margin, after Holm's correction too;
- *open*: neither.

Holm rejects only where p < 0.05, and then the 95 % interval excludes 0.
"""

import math
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np
from scipy.stats import norm as normal
from scipy.stats import t as student_t

from arml.report.data.summary import INDEPENDENT, Seeds, Summary, summarise

LEVEL, POWER = 0.05, 0.8
MARGIN = 1.0
"""Differences below this many points count as none."""
MOST_SEEDS = 100
"""Beyond this many further seeds, the number is not given."""


class Outcome(Enum):
    """What a family of tests allows to say about ours minus theirs."""

    LESS = "less"
    MORE = "more"
    SAME = "same"
    OPEN = "open"


class Decision(NamedTuple):
    """A paired comparison of two lines, decided. Less is better."""

    outcome: Outcome
    difference: Summary | None
    """Ours minus theirs in points, with its uncorrected 95 % interval; ``None`` if no seed has both."""
    less: int = 0
    """Seeds on which ours is less."""
    more: int = 0
    """Seeds on which ours is more."""
    further: float | None = None
    """Further seeds that are expected to settle an open case; infinite beyond MOST_SEEDS, ``None`` if unknown."""
    needs_rows: bool = False
    """Whether no number of seeds is expected to settle it, since they divide the same rows again and again."""

    def flip(self) -> "Decision":
        """The same comparison, theirs minus ours."""
        swapped = {Outcome.LESS: Outcome.MORE, Outcome.MORE: Outcome.LESS}.get(self.outcome, self.outcome)
        found = self.difference and self.difference._replace(mean=-self.difference.mean)
        return self._replace(outcome=swapped, difference=found, less=self.more, more=self.less)


def decide(family: Sequence[Sequence[float]], seeds: Seeds = INDEPENDENT) -> list[Decision]:
    """A decision for each list of paired differences, corrected for all of them together.

    >>> [one.outcome.value for one in decide([[-5.0, -5.5, -4.5, -5.0], [0.1, 0.0, -0.1, 0.0], [3.0, -2.0], [4.0]])]
    ['less', 'same', 'open', 'open']
    """
    tested = [one for one in family if len(one) > 1]
    differ = iter(holm([_p_different(one, seeds) for one in tested]))
    equal = iter(holm([_p_equal(one, seeds) for one in tested]))
    return [
        _decision(one, next(differ), next(equal), len(tested), seeds) if len(one) > 1 else _single(one)
        for one in family
    ]


def _single(differences: Sequence[float]) -> Decision:
    found = summarise(differences) if differences else None
    return Decision(Outcome.OPEN, found, sum(d < 0 for d in differences), sum(d > 0 for d in differences))


def _decision(differences: Sequence[float], differ: bool, equal: bool, m: int, seeds: Seeds) -> Decision:
    found = summarise(differences, overlap=seeds.overlap, least_spread=seeds.least_spread(len(differences)))
    spread, settled = _spread(differences, seeds), differ or equal
    outcome = (Outcome.LESS if found.mean < 0 else Outcome.MORE) if differ else Outcome.SAME if equal else Outcome.OPEN
    return Decision(
        outcome,
        found,
        sum(d < 0 for d in differences),
        sum(d > 0 for d in differences),
        None if settled else further_seeds(found.mean, spread, found.n, m, seeds.overlap),
        not settled and _needs_rows(found.mean, spread, m, seeds.overlap),
    )


def holm(ps: Sequence[float]) -> list[bool]:
    """Which hypotheses Holm's procedure rejects: p_(i) <= LEVEL / (m - i), i = 0, 1, ..., up to the first that fails.

    >>> holm([0.04, 0.001, 0.03])
    [False, True, False]
    """
    rejected = [False] * len(ps)
    for i, place in enumerate(sorted(range(len(ps)), key=lambda place: ps[place])):
        if ps[place] > LEVEL / (len(ps) - i):
            break
        rejected[place] = True
    return rejected


def further_seeds(mean: float, spread: float, n: int, m: int = 1, o: float = 0.0) -> float:
    """About how many further seeds settle the case with a power of 80 %, if mean and spread stay as they are.

    N = min {N : (t(1 - a/2, N - 1) + t(0.8, N - 1)) s sqrt(1 / N + o) <= max(|d|, MARGIN - |d|)} with a = LEVEL / m,
    the level of Holm's first step. A large |d| will be a difference, a small one will be none worth the name.

    >>> further_seeds(-4.0, 4.0, n=3), further_seeds(0.0, 20.0, n=3)
    (7.0, inf)
    """
    counts = np.arange(max(n + 1, 2), n + MOST_SEEDS + 1)
    factor = student_t.ppf(1 - LEVEL / m / 2, counts - 1) + student_t.ppf(POWER, counts - 1)
    enough = factor * spread * np.sqrt(1 / counts + o) <= max(abs(mean), MARGIN - abs(mean))
    return float(counts[enough][0] - n) if enough.any() else math.inf


def _needs_rows(mean: float, spread: float, m: int, o: float) -> bool:
    """Whether the condition of ``further_seeds`` fails for N without limit, which it can only if o > 0."""
    factor = float(normal.ppf(1 - LEVEL / m / 2) + normal.ppf(POWER))
    return factor * spread * math.sqrt(o) > max(abs(mean), MARGIN - abs(mean))


def _spread(differences: Sequence[float], seeds: Seeds) -> float:
    return max(float(np.std(differences, ddof=1)), seeds.least_spread(len(differences)))


def _p_different(differences: Sequence[float], seeds: Seeds) -> float:
    """The two-sided p value of d = 0."""
    return 2 * _upper_tail(abs(float(np.mean(differences))), differences, seeds)


def _p_equal(differences: Sequence[float], seeds: Seeds) -> float:
    """Twice the larger p value of the two one-sided tests of |d| >= MARGIN.

    Twice, since the usual test goes with the 90 % interval, and the report shows that of 95 %.
    """
    return min(1.0, 2 * _upper_tail(MARGIN - abs(float(np.mean(differences))), differences, seeds))


def _upper_tail(distance: float, differences: Sequence[float], seeds: Seeds) -> float:
    error = _spread(differences, seeds) * math.sqrt(1 / len(differences) + seeds.overlap)
    if error == 0:
        return 0.0 if distance > 0 else 1.0
    return float(student_t.sf(distance / error, len(differences) - 1))
