"""How much the auxiliary part of the loss counts over the run: all of it at first, nothing at the end."""

import math
from dataclasses import dataclass
from typing import Protocol


class Fade(Protocol):
    """Multiplies the auxiliary part of the loss. Any object with this method will do."""

    def share(self, step: int) -> float:
        """The share, from 1 to 0, at training step number ``step``, counted from 0."""
        ...


@dataclass(frozen=True)
class LinearFade(Fade):
    r"""Falls on a straight line from 1 at ``start`` to 0 at ``until``.

    .. math:: \text{share}(t) = 1 - x, \qquad x = \frac{t - \text{start}}{\text{until} - \text{start}}

    with x kept between 0 and 1.

    >>> [LinearFade(until=4).share(step) for step in range(6)]
    [1.0, 0.75, 0.5, 0.25, 0.0, 0.0]
    >>> LinearFade(until=0.5, total=100).share(25)
    0.5
    """

    until: int | float
    """The first step with the share 0: a whole number of steps, or a fraction in (0, 1] of ``total``."""
    total: int | None = None
    """Steps of the whole run; needed for fractions only."""
    start: int | float = 0
    """The last step with the whole share, in the same units."""

    def __post_init__(self) -> None:
        _count_steps(self, self.until, self.total, self.start)

    def share(self, step: int) -> float:
        """1 - x."""
        return 1 - _way_done(step, *_count_steps(self, self.until, self.total, self.start))


@dataclass(frozen=True)
class CosineFade(Fade):
    r"""Falls from 1 at ``start`` to 0 at ``until``, slowly at both ends.

    .. math:: \text{share}(t) = \frac{1 + \cos \pi x}{2}

    with x as in :class:`LinearFade`.

    >>> [round(CosineFade(until=4).share(step), 3) for step in range(6)]
    [1.0, 0.854, 0.5, 0.146, 0.0, 0.0]
    """

    until: int | float
    """The first step with the share 0: a whole number of steps, or a fraction in (0, 1] of ``total``."""
    total: int | None = None
    """Steps of the whole run; needed for fractions only."""
    start: int | float = 0
    """The last step with the whole share, in the same units."""

    def __post_init__(self) -> None:
        _count_steps(self, self.until, self.total, self.start)

    def share(self, step: int) -> float:
        """(1 + cos(pi x)) / 2."""
        return (1 + math.cos(math.pi * _way_done(step, *_count_steps(self, self.until, self.total, self.start)))) / 2


@dataclass(frozen=True)
class MainOnlyAtEnd(Fade):
    """Trains on the main task alone from step ``until`` on; before, the auxiliary part counts as usual.

    >>> [MainOnlyAtEnd(until=0.8, total=5).share(step) for step in range(5)]
    [1.0, 1.0, 1.0, 1.0, 0.0]
    """

    until: int | float
    """The first step with the share 0: a whole number of steps, or a fraction in (0, 1] of ``total``."""
    total: int | None = None
    """Steps of the whole run; needed for fractions only."""

    def __post_init__(self) -> None:
        _count_steps(self, self.until, self.total)

    def share(self, step: int) -> float:
        """1 before ``until``, 0 from then on."""
        return float(step < _count_steps(self, self.until, self.total)[1])


def _way_done(step: int, start: int, end: int) -> float:
    """x, from 0 to 1."""
    return min(max((step - start) / (end - start), 0.0), 1.0)


def _count_steps(fade: Fade, until: float, total: int | None, start: float = 0) -> tuple[int, int]:
    """Start and end in steps; raises unless the settings of ``fade`` make sense."""
    name = type(fade).__name__
    if total is not None and (isinstance(total, float) or total < 1):
        raise ValueError(f"{name}: `total` should be a whole number of steps of at least 1. Got {total!r}.")
    end = _to_steps(f"{name}: `until`", until, total)
    begin = 0 if start == 0 else _to_steps(f"{name}: `start`", start, total)
    if not begin < end:
        raise ValueError(f"{name}: `start` should come before `until`. Got start={start!r} and until={until!r}.")
    return begin, end


def _to_steps(what: str, given: float, total: int | None) -> int:
    if not isinstance(given, float):
        if given < 1:
            raise ValueError(f"{what} should be a step of at least 1, or a fraction in (0, 1]. Got {given!r}.")
        return given
    if not 0 < given <= 1:
        raise ValueError(
            f"{what} should be a whole number of steps, or a fraction in (0, 1] of `total`. Got {given!r}. "
            "Steps are integers: write 500, not 500.0."
        )
    if total is None:
        raise ValueError(
            f"{what} is a fraction, so `total` must be given. Got {given!r} and total=None. "
            "Pass the number of steps of the run as `total`, or give steps."
        )
    return max(1, round(given * total))
