"""Weights in proportion to proven agreement with the main task."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.methods.base import (
    Method,
    Needs,
    check_positive,
    main_direction,
    prepend_main,
    require,
    steerable_tasks,
)
from arml.schedule import Growing

PATIENCE = 14
"""A task is judged after so many times ``warmup`` samples, whatever their importance."""
INDIRECT = 2
"""Samples from gradients on the last shared layer tell less: so many times as many are needed."""
PRIOR = 4
"""So many samples say that all tasks with a head of their own are equally related to the main one."""


class Samples(NamedTuple):
    """Sums over the samples r of every task, [K]. Each sample has an importance w."""

    times: Tensor
    """Number of samples of any importance."""
    importance: Tensor
    """Sum of w."""
    squared_importance: Tensor
    """Sum of w^2."""
    values: Tensor
    """Sum of w r."""
    squares: Tensor
    """Sum of w r^2."""

    def add(self, r: Tensor, w: Tensor) -> "Samples":
        """These samples and one more per task; none where w is 0."""
        return Samples(*(old + new for old, new in zip(self, (w > 0, w, w * w, w * r, w * r * r), strict=True)))

    def number(self) -> Tensor:
        """n = (sum w)^2 / sum w^2: the number of equally important samples that would tell as much."""
        return self.importance.square() / _not_zero(self.squared_importance)

    def mean(self) -> Tensor:
        """m = sum w r / sum w."""
        return self.values / _not_zero(self.importance)

    def standard_error(self) -> Tensor:
        """e, the standard error of the mean: e^2 = (sum w r^2 / sum w - m^2) / (n - 1)."""
        variance = self.squares / _not_zero(self.importance) - self.mean().square()
        return (variance.clamp(min=0) / (self.number() - 1).clamp(min=1e-3)).sqrt()


class AgreementMemory(NamedTuple):
    """Flat, as memory is a tuple of tensors: five of them are :class:`Samples`."""

    weights: Tensor
    """The weights in force, [1 + K]."""
    times: Tensor
    importance: Tensor
    squared_importance: Tensor
    values: Tensor
    squares: Tensor
    competes: Tensor
    """[K] of bool: whether a task trains the outputs of the main one."""
    relatedness: Tensor
    """[K]: sum of q^2, for tasks with a head of their own."""

    def samples(self) -> Samples:
        """The samples so far."""
        return Samples(self.times, self.importance, self.squared_importance, self.values, self.squares)


@dataclass(frozen=True)
class Agreement(Method[AgreementMemory]):
    r"""Gives weight to tasks whose gradient has proven to agree with the main one. The recommended method; ours.

    A task **competes** with the main one if it trains the same outputs: it goes through every parameter of the main
    task, its head too, as another domain with the same classes does. What it teaches may contradict the main labels, so
    it must prove itself. Every update yields one sample of its agreement: do the two tasks want alike outputs for alike
    features? With the contrasts C, the gradients on the outputs' layer with centred features
    (:mod:`arml.gradients.contrast`),

    .. math:: r_k = \frac{\langle C_0, C_k \rangle}{\|C_0\| \|C_k\|}

    Its importance is :math:`w = \|C_0\|`: once the few labels are learned by heart, their gradient says nothing about
    new examples. :math:`m_k` is the weighted mean of the samples and :math:`e_k` its standard error. With
    :math:`b_k = \max(0, m_k - d\, e_k)` and the sums over competing tasks,

    .. math:: \alpha_k = s\, \frac{b_k}{\sum_j b_j} \max_j \frac{b_j}{m_j}

    All of them together count s times as much as the main task, less where the evidence is thin, and not at all where
    there is none: the main task is then trained alone.

    A task with a head of its own shapes common features only, and no sign of agreement speaks for or against it: with
    its head mirrored it would teach the same features, and every sign would be another. What counts is how much of the
    main gradient its gradient shares, in either direction, relative to the other K' tasks of this kind:

    .. math:: q_k = \sqrt{K'}\, c_k \Big/ \Bigl(\sum_j c_j^2\Bigr)^{1/2}, \qquad
        c_k = \langle g_0, g_k \rangle / \|g_k\|

    With the mean of n samples of equal importance and :data:`PRIOR` more of 1,

    .. math:: \rho_k^2 = \frac{n_0 + \sum q_k^2}{n_0 + n}, \qquad
        \alpha_k = h\, \rho_k \Big/ \tfrac{1}{K'} \textstyle\sum_j \rho_j

    Before ``warmup`` samples of equal importance, a competing task counts nothing: a few steps on wrong labels do harm
    that stays. Few labels on good features are learned in a few steps, and later samples weigh next to nothing: after
    :data:`PATIENCE` times ``warmup`` samples of any importance, tasks are judged all the same.

    Losses are first brought to the scale of the main loss (``Needs(units=True)``), so that no weight depends on the
    scale of any loss. Gradients g are those on the last shared layer (``Needs(nearest=True)``): they tell as much there
    as on the whole trunk, and cost so little that there can be many samples. Updates are frequent at first and ever
    rarer later: see :meth:`schedule`.

    Contrasts need a linear layer before the losses, and all tasks in one batch. Without them (a compiled network,
    batches with some of the tasks each) :math:`r_k` is :math:`q_k` over all tasks and :math:`w = \|g_0\|`. These
    samples are worth less, because every task levels the random first outputs: twice as many are needed.
    """

    doubt: float = 1.0
    """d, the standard errors by which the agreement of a competing task must exceed 0."""
    warmup: int = 3
    """Samples of equal importance, n, that a competing task must exceed to get any weight; see :data:`PATIENCE`."""
    share: float = 1.0
    """s, the largest sum of the weights of competing tasks; the main task has 1."""
    own_head: float = 1.0
    """h, the mean weight of the tasks with heads of their own."""

    def __post_init__(self) -> None:
        check_positive(self, share=self.share, own_head=self.own_head)
        if not 0 <= self.doubt < float("inf"):
            raise ValueError(f"Agreement: `doubt` should be a number of at least 0. Got {self.doubt!r}.")
        if self.warmup < 2 or self.warmup != int(self.warmup):
            raise ValueError(f"Agreement: `warmup` should be a whole number of at least 2. Got {self.warmup!r}.")

    def needs(self) -> Needs:
        """Losses in common units, which tasks compete, their contrasts, and gradients on the last shared layer."""
        return Needs(outputs=True, contrasts=True, units=True, nearest=True)

    def schedule(self) -> Growing:
        """After n calls the next update is 1 + n // 16 calls away: 58 updates in 300 calls, 165 in 200 000.

        Each doubling of the number of calls takes eleven updates: late steps of a long run do not outvote early ones.
        """
        return Growing(most=1_000_000, rate=16)

    def settle(self, average: Tensor, last: Tensor) -> Tensor:
        """The last weights: they rest on all samples already, and a task that is off stays off."""
        del average
        return last

    def init(self, like: Tensor) -> AgreementMemory:
        """As if all tasks competed, with equal weights: they hold until gradients are first compared."""
        zeros = torch.zeros_like(like[1:])
        weights = prepend_main(torch.full_like(zeros, self.share / max(len(zeros), 1)))
        return AgreementMemory(weights, *Samples(*[zeros] * 5), torch.ones_like(zeros, dtype=torch.bool), zeros)

    def directions(self, state: AgreementMemory) -> Tensor:
        """c = e_0."""
        return main_direction(state.weights)

    def update(self, state: AgreementMemory, signals: Signals) -> tuple[Tensor, AgreementMemory]:
        """Adds one sample per task, and weights the tasks present by all samples so far."""
        here = steerable_tasks(signals)
        if not bool(here.any()):
            return state.weights, state
        competes = state.competes if signals.same_outputs is None else signals.same_outputs
        alignment = _alignment(signals)
        samples = state.samples().add(*_sample(signals, alignment, here, competes))
        needed = self.warmup if signals.contrasts is not None else INDIRECT * self.warmup
        relatedness = state.relatedness + _relative(_per_length(alignment, signals), here & ~competes).square()
        chosen = torch.where(
            competes, self._prove(samples, competes, needed), self._relate(samples, relatedness, competes)
        )
        weights = prepend_main(torch.where(here, chosen, state.weights[1:]))
        return weights, AgreementMemory(weights, *samples, competes, relatedness)

    def _prove(self, samples: Samples, competes: Tensor, needed: int) -> Tensor:
        """The weights [K] of competing tasks, which must prove themselves by more than ``needed`` samples."""
        mean, error = samples.mean(), samples.standard_error()
        known = (samples.number() > needed) | (samples.times >= PATIENCE * self.warmup)
        proven = torch.where(known & competes, (mean - self.doubt * error).clamp(min=0), 0.0)
        certainty = (proven / _not_zero(mean.abs())).max()
        return self.share * certainty * proven / _not_zero(proven.sum())

    def _relate(self, samples: Samples, relatedness: Tensor, competes: Tensor) -> Tensor:
        """The weights [K] of tasks with heads of their own, in proportion to how related they are."""
        rho = ((PRIOR + relatedness) / (PRIOR + samples.times)).sqrt()
        own = (~competes).to(rho)
        return self.own_head * rho * own.sum() / _not_zero((own * rho).sum())


def _alignment(signals: Signals) -> Tensor:
    """<g_0, g_i> of every task, [1 + K]; 0 where contrasts tell about all of them."""
    if signals.alignment is None and signals.contrasts is not None:
        return torch.zeros_like(signals.losses)
    return require(signals.alignment, "an alignment")[0]


def _sample(signals: Signals, alignment: Tensor, here: Tensor, competes: Tensor) -> tuple[Tensor, Tensor]:
    """r and w of every task, [K] each; w is 0 where there is nothing to compare."""
    if signals.contrasts is None or not bool((here & competes).any()):
        return _relative(alignment[1:], here), here * alignment[0].clamp(min=0).sqrt()
    products, squares = signals.contrasts
    lengths = squares.sqrt()
    r = products[1:] / _not_zero(lengths[0] * lengths[1:])
    return r, lengths[0] * torch.where(competes, lengths[1:] > 0, here)


def _per_length(alignment: Tensor, signals: Signals) -> Tensor:
    """c of every task, [K]: its product with the main gradient, divided by the length of its own where that is known.

    Otherwise tasks that stay hard to learn would seem related: their gradients stay long.
    """
    lengths = torch.zeros_like(alignment) if signals.lengths is None else signals.lengths
    return alignment[1:] / torch.where(lengths[1:] > 0, lengths[1:], 1.0)


def _relative(products: Tensor, among: Tensor) -> Tensor:
    """``products`` [K] divided by their root mean square over the tasks ``among`` [K] of bool; 0 for all others."""
    chosen = torch.where(among, products, 0.0)
    return chosen * (among.sum().sqrt() / _not_zero(chosen.norm()))


def _not_zero(values: Tensor) -> Tensor:
    """``values``, not below a tiny positive number: as denominators they keep quotients with 0 at 0."""
    return values.clamp(min=1e8 * torch.finfo(values.dtype).tiny)
