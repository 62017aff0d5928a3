"""Weights for tasks that have proven to agree with the main one."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.methods._evidence import FADING, SEEN, Comparisons, Meetings, Samples, log_odds, not_zero
from arml.methods._trial import Trial
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

LASTING = 0.5
"""A belief does not fall while this share of the evidence that it took remains."""
AT_ONCE = 0.25
"""How much a task is believed at least, once it is believed."""
INDIRECT = 2
"""Samples of gradients tell less than answers: so many times as many are needed."""
PRIOR = 4
"""So many samples say that all tasks with a head of their own are equally related to the main one, and learnable."""
PEERS = 0.4
"""Tasks are peers if they answer each other's examples with this share of the correlation on their own."""
ALIKE = 3
"""A task that answers its own examples with so many times the correlation of another is not its peer."""


class AgreementMemory(NamedTuple):
    """Flat, as memory is a tuple of tensors.

    Five of them are :class:`Samples`, three :class:`Comparisons`, three a :class:`Trial`, three :class:`Meetings`.
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
    """[K] of bool: competing tasks that have had weight for long enough that the network knows their answers."""
    sight: Tensor
    trust: Tensor
    on_trial: Tensor
    answered: Tensor
    """[K]: sum of o, which says how well a task's own next examples are answered; the last ones count most."""
    asked: Tensor
    """[K]: number of its terms."""
    met: Tensor
    fit: Tensor
    fit_chance: Tensor

    def samples(self) -> Samples:
        """The samples so far."""
        return Samples(self.times, self.importance, self.squared_importance, self.values, self.squares)

    def comparisons(self) -> Comparisons:
        """The comparisons of answers so far."""
        return Comparisons(self.compared, self.transfer, self.chance)

    def trial(self) -> Trial:
        """The trial as it stands."""
        return Trial(self.sight, self.trust, self.on_trial)

    def meetings(self) -> Meetings:
        """What tasks have answered for each other so far."""
        return Meetings(self.met, self.fit, self.fit_chance)


@dataclass(frozen=True)
class Agreement(Method[AgreementMemory]):
    r"""Gives weight to tasks that have proven to agree with the main one. The recommended method; ours.

    A task **competes** with the main one if it trains the same outputs: it goes through every parameter of the main
    task, its head too, as another domain with the same classes does. What it teaches may contradict the main labels, so
    it counts nothing until it has proven itself: a few steps on wrong labels do harm that stays. Every update asks
    three questions about it (:mod:`arml.gradients.transfer`).

    - *Do its answers fit the main examples?* A regression on the features of its own batches answers the main examples.
      :math:`p_k` is the correlation with their labels, and :math:`\nu_k` what chance would bring. Both are means over
      the updates until the task is first trained on: later the network learns its answers, and they prove nothing.
    - *Does it know its own examples?* :math:`o_k` is the same correlation on its own next ones.
    - *Does it agree with other tasks?* Two competing tasks are **peers** if the answers of each fit the examples of the
      other better than by chance and by at least :data:`PEERS` of :math:`\sqrt{o_j o_k}`, and if neither knows its own
      :data:`ALIKE` times as well as the other. Tasks have many labels, so this is soon known; who is wrong in a way of
      his own agrees with nobody.

    A task and its :math:`n_k` peers are right or wrong together: p, :math:`\nu` and o are means over them, and
    who agrees with others is the likelier to be right. With :func:`~arml.methods._evidence.log_odds`,

    .. math:: e_k = \ln \frac{P(p \mid \text{right})}{P(p \mid \text{wrong})} + 2 \ln(1 + n_k)

    A task is believed from odds of :math:`e^d` on, by a quarter at first (:data:`AT_ONCE`). All competing tasks
    together count s times as much as the main one at most, and not at all where none has proven anything:

    .. math:: b_k = \min(1, e_k - d + \tfrac14) \text{ if } e_k > d \text{, else } 0, \qquad
        \alpha_k = s\, \frac{b_k}{\sum_j b_j} \max_j b_j

    A belief does not fall while :math:`e_k > d / 2`.

    **Blind.** Where even the main examples do not agree with one another, because the features of a network at its
    start know nothing about such data, no task can be judged by them; but then the main task alone does hardly better
    than chance, there is little to lose, and features have to be learned from somewhere. If :math:`p_0 / \nu_0` of the
    main examples (:func:`arml.gradients.transfer.associate`) is below 1 at the first update, two or more competing
    tasks with as many answers are put on trial (:mod:`arml.methods._trial`): each has :math:`\alpha_k = s`. The trial
    ends when a task answers its own next examples with :data:`SEEN`, or 40 updates after the warm-up. Tasks with a
    peer, by 0.6 of :math:`\sqrt{o_j o_k}` this time, keep this weight then, and all others are off for good. If
    features see by the end of the warm-up, they were not blind: nothing has passed, and tasks are judged as above. Of
    two answers the wrong one is worse than chance, so there this rule does not hold.

    A task with a head of its own shapes common features only, and no sign of agreement speaks for or against it: with
    its head mirrored it would teach the same features, and every sign would be another. What counts is how much of the
    main gradient its gradient shares, in either direction, relative to the other K' tasks of this kind:

    .. math:: q_k = \sqrt{K'}\, c_k \Big/ \Bigl(\sum_j c_j^2\Bigr)^{1/2}, \qquad
        c_k = \langle g_0, g_k \rangle / \|g_k\|

    With the mean of n samples of equal importance and :data:`PRIOR` more of 1,

    .. math:: \rho_k^2 = \frac{n_0 + \sum q_k^2}{n_0 + n}, \qquad
        \alpha_k = h\, \lambda_k\, \rho_k \Big/ \tfrac{1}{K'} \textstyle\sum_j \rho_j

    What features cannot answer at all, such as the toss of a coin, is learned by heart and spoils them. With the mean
    of :math:`o_k`, which fades, and :data:`PRIOR` more of :data:`SEEN`,

    .. math:: \lambda_k = \min\bigl(1, \max(0, \overline{o}_k) / 0.2\bigr)^2

    It is 1 for tasks without a linear layer before the loss. A task that is hard at first counts little until features
    answer it, and in full then.

    Losses are first brought to the scale of the main loss (``Needs(units=True)``), so that no weight depends on the
    scale of any loss. Gradients g are those on the last shared layer (``Needs(nearest=True)``): they tell as much there
    as on the whole trunk, and cost so little that there can be many samples. Updates are frequent at first and ever
    rarer later: see :meth:`schedule`.

    Answers need a linear layer before the losses, and all tasks in one batch. Without them (a compiled network, batches
    with some of the tasks each, batches of two main examples) competing tasks are judged by gradients: with
    :math:`q_k` over all tasks as samples of importance :math:`\|g_0\|`, their mean m and its standard error
    :math:`\varepsilon`, :math:`z = m / \varepsilon` and :math:`e_k = z |z| / 2`. These samples are worth less, because
    every task levels the random first outputs: twice as many are needed.
    """

    doubt: float = 2.5
    """d, the logarithm of the odds from which on a competing task is believed."""
    warmup: int = 8
    """Updates after which a competing task is judged."""
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
        """Losses in common units, which tasks compete, their answers, and gradients on the last shared layer."""
        return Needs(outputs=True, answers=True, units=True, nearest=True)

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
        """As if all tasks competed, with equal weights: they hold until tasks are first compared."""
        zeros = torch.zeros_like(like[1:])
        weights = prepend_main(torch.full_like(zeros, self.share / max(len(zeros), 1)))
        competes, sight = torch.ones_like(zeros, dtype=torch.bool), torch.full_like(like[0], float("inf"))
        known = (*Samples(*[zeros] * 5), competes, zeros, *Comparisons(*[zeros] * 3), zeros, ~competes)
        no_trial = Trial(sight, zeros, torch.zeros_like(sight, dtype=torch.bool))
        return AgreementMemory(weights, *known, *no_trial, zeros, zeros, *[torch.outer(zeros, zeros)] * 3)

    def directions(self, state: AgreementMemory) -> Tensor:
        """c = e_0."""
        return main_direction(state.weights)

    def update(self, state: AgreementMemory, signals: Signals) -> tuple[Tensor, AgreementMemory]:
        """Adds what this step shows of every task, and weights the tasks present by all that is known by now."""
        here = steerable_tasks(signals)
        if not bool(here.any()):
            return state.weights, state
        competes = state.competes if signals.same_outputs is None else signals.same_outputs
        alignment = _alignment(signals)
        samples = state.samples().add(*_sample(signals, alignment, here))
        relatedness = state.relatedness + _relative(_per_length(alignment, signals), here & ~competes).square()
        answered, asked = _answered(state, signals)
        own = answered / asked.clamp(min=1)
        meetings = state.meetings() if signals.peers is None else state.meetings().add(*signals.peers.to(own))
        trial, sight = state.trial(), _sight(state, signals)
        if bool(trial.running):
            trial = trial.proceed(own, meetings, int(samples.times.max()) - self.warmup)
        elif sight is not None:
            trial = trial.begin(sight, competes & _asks_alike(signals))
        tried = competes & state.on_trial & (samples.times > self.warmup)
        comparisons = _compare(state, signals, unknown=~(state.trained | tried | trial.running))
        compared = comparisons.compared > 0
        e = torch.where(
            compared,
            _weigh(comparisons, own, meetings.peers(own, PEERS) & _know_alike(own) & competes),
            samples.log_odds(),
        )
        needed = torch.where(compared, self.warmup, INDIRECT * self.warmup)
        belief = self._believe(e, competes & (samples.times >= needed) & ~trial.running, state.belief)
        shares = torch.where(trial.trust.any(), self.share * trial.trust, self._share_out(belief))
        related = self._relate(samples, relatedness, competes) * _learnable(answered, asked)
        weights = prepend_main(torch.where(here, torch.where(competes, shares, related), state.weights[1:]))
        trained = state.trained | (tried | competes & (weights[1:] > 0)) & ~trial.running
        known = (*samples, competes, relatedness, *comparisons, belief, trained, *trial, answered, asked, *meetings)
        return weights, AgreementMemory(weights, *known)

    def _believe(self, e: Tensor, judged: Tensor, before: Tensor) -> Tensor:
        """b of competing tasks, [K]. It does not fall again while enough of the evidence remains."""
        b = torch.where(judged & (e > self.doubt), (e - self.doubt + AT_ONCE).clamp(max=1), 0.0)
        return torch.where(e > LASTING * self.doubt, torch.maximum(b, before), b)

    def _share_out(self, belief: Tensor) -> Tensor:
        """The weights [K] of competing tasks that are believed so much."""
        return self.share * belief.max() * belief / not_zero(belief.sum())

    def _relate(self, samples: Samples, relatedness: Tensor, competes: Tensor) -> Tensor:
        """The weights [K] of tasks with heads of their own, in proportion to how related they are."""
        rho = ((PRIOR + relatedness) / (PRIOR + samples.times)).sqrt()
        own = (~competes).to(rho)
        return self.own_head * rho * own.sum() / not_zero((own * rho).sum())


def _know_alike(own: Tensor) -> Tensor:
    """[K, K] of bool: pairs of tasks that answer their own examples about as well as each other.

    What a random task has learned of a few examples seems to fit some right one among many, by chance.
    """
    return (ALIKE * own[:, None] > own) & (ALIKE * own > own[:, None])


def _weigh(comparisons: Comparisons, own: Tensor, peers: Tensor) -> Tensor:
    """e of every task, [K]: the log odds of what it and its n peers show together, and 2 ln(1 + n)."""
    p, nu = comparisons.means()
    group = (peers & (comparisons.compared > 0)).to(p) + torch.eye(len(p)).to(p)
    size = group.sum(1)
    together = (group @ part / size for part in (p, nu, own))
    return log_odds(*together) + 2 * size.log()


def _compare(state: AgreementMemory, signals: Signals, *, unknown: Tensor) -> Comparisons:
    """The comparisons with those of this update, for tasks whose answers are ``unknown`` to the network, [K] of bool.

    Features soon carry the answers of a task that is trained on: they prove nothing any more.
    """
    if signals.transfer is None:
        return state.comparisons()
    p, nu = signals.transfer[:, 1:].to(state.transfer)
    return state.comparisons().add(p, nu, unknown & (nu > 0))


def _sight(state: AgreementMemory, signals: Signals) -> Tensor | None:
    """p_0 / nu_0 at the first comparison, when features know no answer yet; ``None`` later, and for two answers."""
    if signals.transfer is None or bool(state.sight.isfinite()) or bool(state.compared.any()):
        return None
    p, nu = signals.transfer[:, 0].to(state.sight)
    known = bool(nu > 0) and signals.alternatives is not None and int(signals.alternatives[0]) > 2
    return p / nu if known else None


def _answered(state: AgreementMemory, signals: Signals) -> tuple[Tensor, Tensor]:
    """Sum and number of o, which fade, with those of this update."""
    if signals.own_transfer is None:
        return state.answered, state.asked
    new = signals.own_transfer[1:].to(state.answered)
    sums = (state.answered, new), (state.asked, torch.ones_like(new))
    answered, asked = (torch.where(new != 0, FADING * old + one, old) for old, one in sums)
    return answered, asked


def _learnable(answered: Tensor, asked: Tensor) -> Tensor:
    """lambda of every task, [K]: 1 where features answer its next examples, or where that is not known."""
    o = (PRIOR * SEEN + answered) / (PRIOR + asked)
    return (o / SEEN).clamp(0, 1).square()


def _asks_alike(signals: Signals) -> Tensor:
    """[K] of bool: tasks with as many answers as the main one. Others ask something else, however small their loss."""
    if signals.alternatives is None:
        return torch.zeros_like(signals.losses[1:], dtype=torch.bool)
    return signals.alternatives[1:] == signals.alternatives[0]


def _alignment(signals: Signals) -> Tensor:
    """<g_0, g_i> of every task, [1 + K]; 0 where answers tell about all of them."""
    if signals.alignment is None and signals.transfer is not None:
        return torch.zeros_like(signals.losses)
    return require(signals.alignment, "an alignment")[0]


def _sample(signals: Signals, alignment: Tensor, here: Tensor) -> tuple[Tensor, Tensor]:
    """c and w of every task, [K] each; where there are no gradients the sample only counts."""
    if signals.alignment is None:
        return torch.zeros_like(alignment[1:]), here.to(alignment)
    return _relative(alignment[1:], here), here * alignment[0].clamp(min=0).sqrt()


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
