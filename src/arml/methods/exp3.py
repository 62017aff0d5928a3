"""A bandit over sources, as in FLAD."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.methods.base import Method, Needs, cosines_with_main, main_direction, prepend_main, steerable_tasks
from arml.schedule import Growing


class EXP3Memory(NamedTuple):
    """The current weights, the estimated sum of rewards of every source [K], and the number of updates."""

    weights: Tensor
    rewards: Tensor
    updates: Tensor


@dataclass(frozen=True)
class EXP3(Method[EXP3Memory]):
    r"""Learns which source to draw from; the reward of a source is the cosine of its gradient with the main one.

    .. math:: p_k = (1 - K \epsilon_t) \frac{e^{\epsilon_{t-1} R_k}}{\sum_j e^{\epsilon_{t-1} R_j}} + \epsilon_t,
        \qquad \epsilon_t = \min\Bigl(\frac1K, \sqrt{\frac{\ln K}{K t}}\Bigr), \qquad
        R_k \leftarrow R_k + \frac{\cos(g_k, g_0)}{p_k}

    for the source k of the batch at update t, and :math:`w_k = K p_k`. Dividing by :math:`p_k` makes up for sources
    that are rarely drawn: the sum of rewards is right on average. Auer et al., *The Nonstochastic Multiarmed Bandit
    Problem*, 2002; as in Albalak et al., *Improving Few-Shot Generalization by Exploring and Exploiting Auxiliary
    Data* (FLAD), NeurIPS 2023. The first updates draw all sources alike; none is ever drawn less often than
    :math:`\epsilon_t`.

    Made for :class:`arml.SourceSampler`, which draws by :math:`w_k / K = p_k`. A batch with several sources was not
    drawn: it adds their plain cosines. The probabilities of all sources sum to 1, so an update also moves the weights
    of sources that are not in the batch. FLAD takes the gradient of the language model's head; ``shared`` names ours.
    """

    def needs(self) -> Needs:
        """The length of every gradient, at every batch."""
        return Needs(norms=True, each_batch=True)

    def can_move(self, num_aux: int) -> bool:
        """A single source has weight 1."""
        return num_aux > 1

    def schedule(self) -> Growing:
        """An update at every call: a batch shows one source."""
        return Growing(most=1)

    def init(self, like: Tensor) -> EXP3Memory:
        """Weights of 1."""
        return EXP3Memory(torch.ones_like(like), torch.zeros_like(like[1:]), torch.zeros_like(like[0]))

    def directions(self, state: EXP3Memory) -> Tensor:
        """c = e_0."""
        return main_direction(state.weights)

    def update(self, state: EXP3Memory, signals: Signals) -> tuple[Tensor, EXP3Memory]:
        """Adds the rewards of the sources in the batch."""
        here = steerable_tasks(signals)
        if not bool(here.any()):
            return state.weights, state
        num_aux = len(here)
        probability = state.weights[1:] / num_aux
        reward = cosines_with_main(signals)[1:]
        if int(here.sum()) == 1:
            reward = reward / probability
        rewards = state.rewards + torch.where(here, reward, 0.0)
        before, now = (_exploration(num_aux, int(state.updates) + n) for n in (1, 2))
        exploited = torch.softmax(before * rewards, dim=0)
        weights = prepend_main(num_aux * ((1 - num_aux * now) * exploited + now))
        return weights, EXP3Memory(weights, rewards, state.updates + 1)


def _exploration(num_aux: int, update: int) -> float:
    """epsilon_t: the least probability of a source at update number ``update``."""
    return min(1 / num_aux, math.sqrt(math.log(num_aux) / (num_aux * update)))
