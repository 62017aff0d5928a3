"""Weights for tasks that have proven to agree with the main one."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.methods._evidence import FADING, Comparisons, Samples, not_zero
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

BLIND = 1.0
"""Main examples that agree with one another by fewer standard deviations than this may tell nothing about any task."""
SEEN = 0.2
"""Features that answer the next examples of a task with this correlation know something about it."""
SURE = 2.5
"""So many standard errors are enough to prove a task even then."""
TRIAL = 36
"""Samples of a trial."""
PASSED = 1.0
"""So many standard errors are enough to pass the trial."""
LASTING = 0.5
"""A belief does not fall while this share of the evidence that it took remains."""
AT_ONCE = 0.25
"""How much a task is believed at least, once it is believed."""
INDIRECT = 2
"""Samples from gradients on the last shared layer tell less: so many times as many are needed."""
PRIOR = 4
"""So many samples say that all tasks with a head of their own are equally related to the main one, and learnable."""


class Trial(NamedTuple):
    """Whether main examples can judge tasks, and what follows where they cannot."""

    sight: Tensor
    """How many standard deviations the main examples agreed with one another by at first; infinite: decided."""
    trust: Tensor
    """[K]: 1 for competing tasks that are on trial, or have passed it."""
    running: Tensor
    """A bool: whether tasks are on trial."""

    def begin(self, alike: Tensor, *, sees: bool) -> "Trial":
        """Decides, once, whether the tasks ``alike`` [K] are put on trial: if main examples and features are blind."""
        decided = torch.full_like(self.sight, float("inf"))
        if not bool(self.sight < BLIND) or sees or not bool(alike.any()):
            return self._replace(sight=decided)
        return Trial(decided, alike.to(self.trust), torch.ones_like(self.running))

    def end(self, z: Tensor) -> "Trial":
        """Tasks with evidence ``z`` above :data:`PASSED` stay as they are, all others are off."""
        return self._replace(trust=self.trust * (z > PASSED), running=torch.zeros_like(self.running))


class AgreementMemory(NamedTuple):
    """Flat, as memory is a tuple of tensors.

    Five of them are :class:`Samples`, three :class:`Comparisons`, three a :class:`Trial`.
    """

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
    compared: Tensor
    transfer: Tensor
    chance: Tensor
    belief: Tensor
    """[K]: b of competing tasks."""
    trained: Tensor
    """[K] of bool: competing tasks that have ever had weight since answers were first compared, but for a trial."""
    sight: Tensor
    trust: Tensor
    on_trial: Tensor
    answered: Tensor
    """[K]: sum of o, which says how well a task's own next examples are answered; the last ones count most."""
    asked: Tensor
    """[K]: number of its terms."""

    def samples(self) -> Samples:
        """The samples so far."""
        return Samples(self.times, self.importance, self.squared_importance, self.values, self.squares)

    def comparisons(self) -> Comparisons:
        """The comparisons of answers so far."""
        return Comparisons(self.compared, self.transfer, self.chance)

    def trial(self, sight: Tensor) -> Trial:
        """The trial as it stands, with this ``sight``."""
        return Trial(sight, self.trust, self.on_trial)


@dataclass(frozen=True)
class Agreement(Method[AgreementMemory]):
    r"""Gives weight to tasks that have proven to agree with the main one. The recommended method; ours.

    A task **competes** with the main one if it trains the same outputs: it goes through every parameter of the main
    task, its head too, as another domain with the same classes does. What it teaches may contradict the main labels, so
    it counts nothing until it has proven itself: a few steps on wrong labels do harm that stays. Every update asks two
    questions about it.

    *Do its answers fit the main examples?* A regression on the features of its own batches answers the main examples,
    and :math:`p_k` is the correlation with their labels (:mod:`arml.gradients.transfer`); :math:`\nu_k` is what chance
    would bring. Both are means over the updates until the task is first trained on, the last ones counting most
    (:data:`FADING`): later the network learns its answers, and they prove nothing.

    *Does it want alike outputs for alike features?* With the contrasts C, the gradients on the outputs' layer with
    centred features (:mod:`arml.gradients.contrast`),

    .. math:: c_k = \frac{\langle C_0, C_k \rangle}{\|C_0\| \|C_k\|}

    This one looks where the network is in two minds, and finds out tasks that call things by the name of similar ones.
    Samples count by :math:`w = \|C_0\|`, because main labels that are known by heart have no gradient to speak of;
    :math:`m_k` is their weighted mean and :math:`e_k` its standard error. With A answers that exclude each other,

    .. math:: s_k = a\, m_k + (1 - \tfrac{a}{2})\, p_k, \qquad \varepsilon_k^2 = a^2 e_k^2 + \nu_k^2, \qquad
        a = \frac{A - 2}{A - 1}

    Of two answers, a contrast mostly says how sure the network should be, so it has no say there. A task is believed
    from d standard errors on, by a quarter at first (:data:`AT_ONCE`); all competing tasks together count s times as
    much as the main one at most, and not at all where none has proven anything. With :math:`z_k = s_k / \varepsilon_k`,

    .. math:: b_k = \min(1, z_k - d + \tfrac14) \text{ if } z_k > d \text{, else } 0, \qquad
        \alpha_k = s\, \frac{b_k}{\sum_j b_j} \max_j b_j

    Contrasts of a task that is trained on fade, because the network learns what it wants. So a belief does not fall
    while :math:`z_k > d / 2`. Below that it was chance: who looks often enough sees d standard errors some day.

    **Blind.** Where even the main examples do not agree with one another, because the features of a network at its
    start know nothing about such data, no task can be judged by them; but then the main task alone does hardly better
    than chance, there is little to lose, and features have to be learned from somewhere. If :math:`p_0 / \nu_0` of the
    main examples (:func:`arml.gradients.transfer.associate`) is below :data:`BLIND` at the first update, and if, when
    tasks are first judged, no :math:`z_k` is above :data:`SURE` and no task answers its own next examples with a
    correlation of :data:`SEEN`, all competing tasks with the same A are put on trial: each has :math:`\alpha_k = s`
    while :data:`TRIAL` new samples are taken, of equal importance, the last ones counting most. Then tasks with
    :math:`z_k` above :data:`PASSED` keep this weight, and all others are off. If none passes, tasks are judged as
    above from then on. Of two answers the wrong one is worse than chance, so there this rule does not hold.

    A task with a head of its own shapes common features only, and no sign of agreement speaks for or against it: with
    its head mirrored it would teach the same features, and every sign would be another. What counts is how much of the
    main gradient its gradient shares, in either direction, relative to the other K' tasks of this kind:

    .. math:: q_k = \sqrt{K'}\, c_k \Big/ \Bigl(\sum_j c_j^2\Bigr)^{1/2}, \qquad
        c_k = \langle g_0, g_k \rangle / \|g_k\|

    With the mean of n samples of equal importance and :data:`PRIOR` more of 1,

    .. math:: \rho_k^2 = \frac{n_0 + \sum q_k^2}{n_0 + n}, \qquad
        \alpha_k = h\, \lambda_k\, \rho_k \Big/ \tfrac{1}{K'} \textstyle\sum_j \rho_j

    What features cannot answer at all, such as the toss of a coin, is learned by heart and spoils them. So the task's
    own next examples are answered by what its rows before them have shown, and :math:`o_k` is the correlation with
    their labels (:func:`arml.gradients.transfer.measure_own`). With the mean of these, which fade, and :data:`PRIOR`
    more of :data:`SEEN`,

    .. math:: \lambda_k = \min\bigl(1, \max(0, \overline{o}_k) / 0.2\bigr)^2

    It is 1 for tasks without a linear layer before the loss. A task that is hard at first counts little until features
    answer it, and in full then.

    Losses are first brought to the scale of the main loss (``Needs(units=True)``), so that no weight depends on the
    scale of any loss. Gradients g are those on the last shared layer (``Needs(nearest=True)``): they tell as much there
    as on the whole trunk, and cost so little that there can be many samples. Updates are frequent at first and ever
    rarer later: see :meth:`schedule`.

    Answers and contrasts need a linear layer before the losses, and all tasks in one batch. Without them (a compiled
    network, batches with some of the tasks each) :math:`c_k` is :math:`q_k` over all tasks, :math:`w = \|g_0\|`, and
    :math:`s_k = m_k`, :math:`\varepsilon_k = e_k`. These samples are worth less, because every task levels the random
    first outputs: twice as many are needed.
    """

    doubt: float = 1.75
    """d, the standard errors by which the agreement of a competing task must exceed 0."""
    warmup: int = 8
    """Samples after which a competing task is judged."""
    share: float = 1.0
    """s, the largest sum of the weights of competing tasks; the main task has 1. On trial, the weight of each."""
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
        competes, sight = torch.ones_like(zeros, dtype=torch.bool), torch.full_like(like[0], float("inf"))
        known = (*Samples(*[zeros] * 5), competes, zeros, *Comparisons(*[zeros] * 3))
        no_trial = Trial(sight, zeros, torch.zeros_like(sight, dtype=torch.bool))
        return AgreementMemory(weights, *known, zeros, ~competes, *no_trial, zeros, zeros)

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
        c, w = _sample(signals, alignment, here, competes)
        # Where the main labels are known by heart to the last digit there is no contrast, and nothing new to know.
        settled = competes & (state.compared > 0) & (signals.contrasts is None)
        samples = _add_samples(state, c, torch.where(settled, 0.0, w))
        relatedness = state.relatedness + _relative(_per_length(alignment, signals), here & ~competes).square()
        comparisons, sight = _compare(state, signals), _sight(state, signals)
        z = torch.where(competes, self._evidence(samples, comparisons, signals), 0.0)
        judged = competes & (samples.times >= self._needed(signals))
        answered, asked = _answered(state, signals)
        trial = state.trial(sight)
        if bool(trial.running) and bool((samples.times >= TRIAL).any()):
            trial = trial.end(z)
        elif bool(judged.any()):
            sees = bool((z > SURE).any() or (answered > SEEN * asked).any())
            trial = trial.begin(competes & _asks_alike(signals), sees=sees)
        samples = samples.forget(competes & trial.running & ~state.on_trial)  # a trial begins anew
        belief = torch.where(settled, state.belief, self._believe(z, judged & ~trial.running, state.belief))
        shares = torch.where(trial.trust.any(), self.share * trial.trust, self._share_out(belief))
        related = self._relate(samples, relatedness, competes) * _learnable(answered, asked)
        chosen = torch.where(competes, shares, related)
        weights = prepend_main(torch.where(here & ~settled, chosen, state.weights[1:]))
        trained = state.trained | competes & (state.on_trial | (weights[1:] > 0)) & ~trial.running
        known = (*samples, competes, relatedness, *comparisons, belief, trained, *trial, answered, asked)
        return weights, AgreementMemory(weights, *known)

    def _needed(self, signals: Signals) -> int:
        """Samples after which a competing task is judged."""
        return self.warmup if signals.contrasts is not None else INDIRECT * self.warmup

    def _evidence(self, samples: Samples, comparisons: Comparisons, signals: Signals) -> Tensor:
        """z = s / epsilon of every task, [K]."""
        alternatives = _alternatives(signals)
        a = (alternatives - 2) / (alternatives - 1) if signals.contrasts is not None else 1.0
        p, nu = comparisons.means()
        s = a * samples.mean() + (1 - a / 2) * p
        epsilon = ((a * samples.standard_error()).square() + nu.square()).sqrt()
        return s / not_zero(epsilon)

    def _believe(self, z: Tensor, judged: Tensor, before: Tensor) -> Tensor:
        """b of competing tasks, [K]. It does not fall again while enough of the evidence remains."""
        b = torch.where(judged & (z > self.doubt), (z - self.doubt + AT_ONCE).clamp(max=1), 0.0)
        return torch.where(z > LASTING * self.doubt, torch.maximum(b, before), b)

    def _share_out(self, belief: Tensor) -> Tensor:
        """The weights [K] of competing tasks that are believed so much."""
        return self.share * belief.max() * belief / not_zero(belief.sum())

    def _relate(self, samples: Samples, relatedness: Tensor, competes: Tensor) -> Tensor:
        """The weights [K] of tasks with heads of their own, in proportion to how related they are."""
        rho = ((PRIOR + relatedness) / (PRIOR + samples.times)).sqrt()
        own = (~competes).to(rho)
        return self.own_head * rho * own.sum() / not_zero((own * rho).sum())


def _add_samples(state: AgreementMemory, c: Tensor, w: Tensor) -> Samples:
    """The samples with those of this update.

    On trial the network learns what tasks want: late samples tell more, however short the main contrast is by then.
    """
    return state.samples().fade().add(c, (w > 0).to(w)) if bool(state.on_trial) else state.samples().add(c, w)


def _compare(state: AgreementMemory, signals: Signals) -> Comparisons:
    """The comparisons with those of this update.

    A task that is believed is trained on, and the features soon carry its answers: they prove nothing any more.
    """
    if signals.transfer is None:
        return state.comparisons()
    p, nu = signals.transfer[:, 1:].to(state.transfer)
    return state.comparisons().add(p, nu, ~state.trained & (nu > 0))


def _sight(state: AgreementMemory, signals: Signals) -> Tensor:
    """p_0 / nu_0 at the first comparison, when features know no answer yet; infinite for tasks with two answers."""
    if signals.transfer is None or bool(state.compared.any()) or _alternatives(signals) <= 2:
        return state.sight
    p, nu = signals.transfer[:, 0].to(state.sight)
    return p / nu if bool(nu > 0) else state.sight


def _answered(state: AgreementMemory, signals: Signals) -> tuple[Tensor, Tensor]:
    """Sum and number of p on the tasks' own next examples, which fade, with those of this update."""
    if signals.own_transfer is None:
        return state.answered, state.asked
    new = signals.own_transfer[1:].to(state.answered)
    sums = (state.answered, new), (state.asked, torch.ones_like(new))
    answered, asked = (torch.where(new != 0, FADING * old + one, old) for old, one in sums)
    return answered, asked


def _learnable(answered: Tensor, asked: Tensor) -> Tensor:
    """lambda of every task, [K]: 1 where features answer its next examples, or where that is not known."""
    p = (PRIOR * SEEN + answered) / (PRIOR + asked)
    return (p / SEEN).clamp(0, 1).square()


def _alternatives(signals: Signals) -> int:
    """A, of the main task."""
    return 2 if signals.alternatives is None else int(signals.alternatives[0])


def _asks_alike(signals: Signals) -> Tensor:
    """[K] of bool: tasks with as many answers as the main one. Others ask something else, however small their loss."""
    if signals.alternatives is None:
        return torch.zeros_like(signals.losses[1:], dtype=torch.bool)
    return signals.alternatives[1:] == signals.alternatives[0]


def _alignment(signals: Signals) -> Tensor:
    """<g_0, g_i> of every task, [1 + K]; 0 where contrasts tell about all of them."""
    if signals.alignment is None and signals.contrasts is not None:
        return torch.zeros_like(signals.losses)
    return require(signals.alignment, "an alignment")[0]


def _sample(signals: Signals, alignment: Tensor, here: Tensor, competes: Tensor) -> tuple[Tensor, Tensor]:
    """c and w of every task, [K] each; w is 0 where there is nothing to compare."""
    if signals.contrasts is None or not bool((here & competes).any()):
        return _relative(alignment[1:], here), here * alignment[0].clamp(min=0).sqrt()
    products, squares = signals.contrasts
    lengths = squares.sqrt()
    c = products[1:] / not_zero(lengths[0] * lengths[1:])
    return c, lengths[0] * torch.where(competes, lengths[1:] > 0, here)


def _per_length(alignment: Tensor, signals: Signals) -> Tensor:
    """c of every task, [K]: its product with the main gradient, divided by the length of its own where that is known.

    Otherwise tasks that stay hard to learn would seem related: their gradients stay long.
    """
    lengths = torch.zeros_like(alignment) if signals.lengths is None else signals.lengths
    return alignment[1:] / torch.where(lengths[1:] > 0, lengths[1:], 1.0)


def _relative(products: Tensor, among: Tensor) -> Tensor:
    """``products`` [K] divided by their root mean square over the tasks ``among`` [K] of bool; 0 for all others."""
    chosen = torch.where(among, products, 0.0)
    return chosen * (among.sum().sqrt() / not_zero(chosen.norm()))
