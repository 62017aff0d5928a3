"""Sums over samples and comparisons of tasks, as :class:`arml.Agreement` remembers them."""

from typing import NamedTuple

import torch
from torch import Tensor

FADING = 0.9
"""What a comparison of answers counts after one more, and a sample of a task on trial."""


class Samples(NamedTuple):
    """Sums over the samples c of every task, [K]. Each sample has an importance w."""

    times: Tensor
    """Number of samples of any importance."""
    importance: Tensor
    """Sum of w."""
    squared_importance: Tensor
    """Sum of w^2."""
    values: Tensor
    """Sum of w c."""
    squares: Tensor
    """Sum of w c^2."""

    def add(self, c: Tensor, w: Tensor) -> "Samples":
        """These samples and one more per task; none where w is 0."""
        return Samples(*(old + new for old, new in zip(self, (w > 0, w, w * w, w * c, w * c * c), strict=True)))

    def fade(self) -> "Samples":
        """The same number of samples, each of which counts less."""
        f = FADING
        w, w2, wc, wc2 = self[1:]
        return Samples(self.times, f * w, f * f * w2, f * wc, f * wc2)

    def forget(self, chosen: Tensor) -> "Samples":
        """No samples of the tasks ``chosen``, [K] of bool."""
        return Samples(*(torch.where(chosen, 0.0, part) for part in self))

    def number(self) -> Tensor:
        """n = (sum w)^2 / sum w^2: the number of equally important samples that would tell as much."""
        return self.importance.square() / not_zero(self.squared_importance)

    def mean(self) -> Tensor:
        """m = sum w c / sum w."""
        return self.values / not_zero(self.importance)

    def standard_error(self) -> Tensor:
        """e, the standard error of the mean: e^2 = (sum w c^2 / sum w - m^2) / (n - 1)."""
        variance = self.squares / not_zero(self.importance) - self.mean().square()
        return (variance.clamp(min=0) / (self.number() - 1).clamp(min=1e-3)).sqrt()


class Comparisons(NamedTuple):
    """Sums over comparisons of answers, [K] each. The later ones count more: they rest on more rows."""

    compared: Tensor
    """Number of comparisons."""
    transfer: Tensor
    """Sum of p."""
    chance: Tensor
    """Sum of nu."""

    def add(self, p: Tensor, nu: Tensor, usable: Tensor) -> "Comparisons":
        """These, which fade, and one more for ``usable`` tasks."""
        new = (torch.ones_like(p), p, nu)
        return Comparisons(*(torch.where(usable, FADING * old + one, old) for old, one in zip(self, new, strict=True)))

    def means(self) -> tuple[Tensor, Tensor]:
        """The means of p and of nu; 0 where nothing was compared."""
        number = self.compared.clamp(min=1)
        return self.transfer / number, self.chance / number


def not_zero(values: Tensor) -> Tensor:
    """``values``, not below a tiny positive number: as denominators they keep quotients with 0 at 0."""
    return values.clamp(min=1e8 * torch.finfo(values.dtype).tiny)
