"""Decides when the weights are updated next."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Growing:
    r"""Updates often at first, rarely later: after n calls the next is g = min(most, 1 + n // rate) calls away.

    Weights change most in the first steps, where rare updates would lag behind. Later they hardly move, and frequent
    updates would only follow noise.

    Such an update steps :math:`\sqrt g` times as far. Measurement noise then moves the weights as much as with an
    update at every call: g steps :math:`\beta\xi_i` and one step :math:`\sqrt g\,\beta\xi` have the same variance.
    A step g times as far would keep the mean speed too, but at g times the variance.

    >>> schedule, n = Growing(most=4, rate=3), 0
    >>> for _ in range(8):
    ...     print(n, end=" ")
    ...     n += schedule.after(n)
    0 1 2 3 5 7 10 14
    """

    most: int = 25
    """Calls between two updates in the long run."""
    rate: int = 10
    """Calls after which the gap between updates grows by one."""

    def __post_init__(self) -> None:
        for name in ("most", "rate"):
            check_whole(f"Growing: `{name}`", getattr(self, name))

    def after(self, calls: int) -> int:
        """The gap, in calls, from an update at call number ``calls`` to the next one."""
        return min(self.most, 1 + calls // self.rate)

    def stride(self, gap: int) -> float:
        """The factor on a method's step size when the next update is ``gap`` calls away."""
        return math.sqrt(gap)


@dataclass(frozen=True)
class Constant:
    """An update every ``every`` calls, with the method's own step size."""

    every: int

    def __post_init__(self) -> None:
        check_whole("`every`", self.every)

    def after(self, calls: int) -> int:
        """The same gap, whatever ``calls``."""
        del calls
        return self.every

    def stride(self, gap: int) -> float:
        """Always 1."""
        del gap
        return 1.0


def check_whole(what: str, number: int) -> None:
    """Raises unless ``number`` is a whole number of at least 1."""
    if number < 1 or number != int(number):
        raise ValueError(f"{what} should be a whole number of at least 1. Got {number!r}.")
