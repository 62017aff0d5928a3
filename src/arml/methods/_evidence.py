"""What :class:`arml.Agreement` remembers of tasks, and what it concludes from it."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

FADING = 0.9
"""What is seen of a task's own answers, and of two tasks' answers for each other, counts this much one update later."""
SEEN = 0.2
"""Features that answer the next examples of a task with this correlation know something about it."""
LEAST = 0.02
"""No task is taken to answer its own examples with less than this correlation: it is measured with an error."""


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

    def log_odds(self) -> Tensor:
        """z |z| / 2 with z = m / e: the logarithm of how much likelier m is if the true mean is m than if it is 0."""
        z = self.mean() / not_zero(self.standard_error())
        return z * z.abs() / 2


class Comparisons(NamedTuple):
    """Sums over comparisons of answers, [K] each."""

    compared: Tensor
    """Number of comparisons."""
    transfer: Tensor
    """Sum of p."""
    chance: Tensor
    """Sum of nu."""

    def add(self, p: Tensor, nu: Tensor, usable: Tensor) -> "Comparisons":
        """These, and one more for ``usable`` tasks."""
        new = (torch.ones_like(p), p, nu)
        return Comparisons(*(torch.where(usable, old + one, old) for old, one in zip(self, new, strict=True)))

    def means(self) -> tuple[Tensor, Tensor]:
        """The means of p and of nu; 0 where nothing was compared."""
        number = self.compared.clamp(min=1)
        return self.transfer / number, self.chance / number


class Meetings(NamedTuple):
    """Sums over the answers of two tasks for each other, [K, K] each. The last ones count most: features improve."""

    met: Tensor
    """Number of terms."""
    fit: Tensor
    """Sum of p."""
    fit_chance: Tensor
    """Sum of nu."""

    def add(self, p: Tensor, nu: Tensor) -> "Meetings":
        """These, which fade, and one more for every pair with nu > 0."""
        new = (torch.ones_like(p), p, nu)
        return Meetings(*(torch.where(nu > 0, FADING * old + one, old) for old, one in zip(self, new, strict=True)))

    def peers(self, own: Tensor, share: float) -> Tensor:
        """[K, K] of bool: tasks that answer for each other better than by chance, and nearly as well as for themselves.

        Args:
            own: how well every task answers its own examples, [K].
            share: what counts as nearly.
        """
        number, known = self.met.clamp(min=1), own.clamp(min=LEAST)
        p, nu = self.fit / number, self.fit_chance / number
        return (p > nu) & (p > share * (known[:, None] * known).sqrt())


def log_odds(p: Tensor, nu: Tensor, own: Tensor) -> Tensor:
    r"""How much likelier p is if a task is right than if it is not, as a logarithm.

    If it is right, p = mu + nu x with x ~ N(0, 1), and mu is anywhere from 0, where its examples look different, to o,
    how well the task answers examples of its own. If not, mu = 0.

    .. math:: e = \ln \frac1o \int_0^o \varphi\Bigl(\frac{p - \mu}{\nu}\Bigr) d\mu - \ln \varphi\Bigl(\frac p\nu\Bigr)
        = \ln \frac\nu o \Bigl(\Phi\Bigl(\frac{o - p}\nu\Bigr) - \Phi\Bigl(-\frac p\nu\Bigr)\Bigr)
        + \frac{p^2}{2 \nu^2} + \tfrac12 \ln 2 \pi

    A task that hardly answers its own examples proves little, however well its answers fit by chance.

    >>> p, nu = torch.tensor([0.3, 0.3, -0.1]), torch.full((3,), 0.1)
    >>> log_odds(p, nu, own=torch.tensor([0.5, 0.01, 0.5]))
    tensor([ 3.7851,  0.3073, -2.0315])
    """
    nu, o = nu.clamp(min=LEAST**2), own.clamp(min=LEAST)
    high, low = (o - p) / nu, -p / nu
    # Phi(high) - Phi(low) = Phi(-low) - Phi(-high): the form in which both are small keeps its digits.
    far, near = torch.where(p < 0, -low, high), torch.where(p < 0, -high, low)
    larger, smaller = torch.special.log_ndtr(far), torch.special.log_ndtr(near)
    between = larger + torch.log(-torch.expm1(smaller - larger))
    odds: Tensor = between + (nu / o).log() + (p / nu).square() / 2 + math.log(2 * math.pi) / 2
    return odds


def not_zero(values: Tensor) -> Tensor:
    """``values``, not below a tiny positive number: as denominators they keep quotients with 0 at 0."""
    return values.clamp(min=1e8 * torch.finfo(values.dtype).tiny)
