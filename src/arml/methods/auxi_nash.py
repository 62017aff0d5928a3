"""Auxiliary learning as an asymmetric bargaining game."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.methods.base import Method, Needs, check_positive, require, steerable_tasks

RIDGE = 1e-4
"""Added to the squared length of unit gradients: opposite gradients have no finite bargain without it."""
MOST_STEPS, MOST_HALVINGS, ENOUGH_FULL_STEPS = 100, 50, 6
"""Of Newton's method. The first two only keep it from running for ever."""


class AuxiNashMemory(NamedTuple):
    """The current weights, and every task's preference; [1 + K] each."""

    weights: Tensor
    preferences: Tensor


@dataclass(frozen=True)
class AuxiNash(Method[AuxiNashMemory]):
    r"""Weights on which tasks agree that bargain for the step, with a bargaining power p that the main task teaches.

    .. math::
        G \alpha = p / \alpha, \qquad w = \alpha / \alpha_0, \qquad
        p \leftarrow p + \beta \frac{h}{\max(1, \|h\|)}, \quad
        h = |g_0|^{-1} \Bigl(\frac{\partial \alpha}{\partial p}\Bigr)^{\!\top} G e_0, \quad
        \frac{\partial \alpha}{\partial p} = \bigl(G + \mathrm{diag}(p / \alpha^2)\bigr)^{-1} \mathrm{diag}(1 / \alpha)

    then p is cut at ``floor`` and scaled back to its sum 1 + K. Shamsian et al., *Auxiliary Learning as an Asymmetric
    Bargaining Game*, ICML 2023. The main loss after a step along :math:`\alpha` falls by :math:`\langle g_0, \sum_i
    \alpha_i g_i \rangle` to first order, and h is its derivative by implicit differentiation of the bargain. Give the
    paper's second main batch as ``reweighter(main, aux, steer=loss)``: G then holds the gradient of the held-out
    main loss. Without it the training batch is used.

    :math:`\alpha` is the minimum of :math:`\tfrac12 \alpha^\top G \alpha - \sum_i p_i \log \alpha_i`, found by Newton's
    method on gradients of unit length, so a factor on a loss changes nothing but its own weight. The release solves a
    sequence of approximate convex problems, clips the joint gradient to length 1, learns p by momentum with three terms
    of a series for the inverse Hessian, and counts the held-out batch in h only. Here :math:`w_0 = 1`, which leaves the
    direction of the step as it is.

    A task with a gradient of zero has nothing to bargain for: its weight stays as it was.
    """

    lr: float = 0.05
    """beta, the step size of the preferences. The release has 0.005 with momentum 0.9, every 25 steps."""
    floor: float = 1e-4
    """The smallest preference. The release's."""

    def __post_init__(self) -> None:
        check_positive(self, lr=self.lr, floor=self.floor)
        if self.floor > 1:
            raise ValueError(f"AuxiNash: `floor` should be at most 1, the mean preference. Got {self.floor!r}.")

    def needs(self) -> Needs:
        """The Gram matrix."""
        return Needs(gram=True)

    def init(self, like: Tensor) -> AuxiNashMemory:
        """Weights and preferences of 1."""
        return AuxiNashMemory(torch.ones_like(like), torch.ones_like(like))

    def update(self, state: AuxiNashMemory, signals: Signals) -> tuple[Tensor, AuxiNashMemory]:
        """The bargain of the tasks that are present, then one step of their preferences."""
        if not bool(steerable_tasks(signals).any()):
            return state.weights, state
        gram = require(signals.gram, "a Gram matrix").double()
        lengths = gram.diagonal().clamp(min=0).sqrt()
        here = signals.seen() & (lengths > 0)
        if not bool(here[0] & here[1:].any()):
            return state.weights, state
        lengths, p = lengths[here], state.preferences[here].double()
        cosines = gram[here][:, here] / torch.outer(lengths, lengths)
        cosines.diagonal().fill_(1 + RIDGE)
        unit = solve_bargain(cosines, p)
        alpha = unit / lengths
        weights, preferences = state.weights.clone(), state.preferences.clone()
        weights[here] = (alpha / alpha[0]).to(weights)
        preferences[here] = self._teach(cosines, unit, p, self.lr * signals.stride).to(preferences)
        return weights, AuxiNashMemory(weights, preferences)

    def _teach(self, cosines: Tensor, alpha: Tensor, p: Tensor, lr: float) -> Tensor:
        """Preferences after one step towards a steeper descent of the main loss; their sum does not change."""
        h: Tensor = torch.linalg.solve(cosines + torch.diag(p / alpha.square()), cosines[0]) / alpha
        length = torch.linalg.vector_norm(h).clamp(min=1)
        moved = (p + lr * h / length).clamp(min=self.floor)
        scaled: Tensor = moved * (p.sum() / moved.sum())
        return scaled


def solve_bargain(gram: Tensor, p: Tensor) -> Tensor:
    """The positive alpha [n] with G alpha = p / alpha, for a positive definite G [n, n] and positive p [n].

    >>> solve_bargain(torch.eye(2, dtype=torch.float64), torch.tensor([1.0, 4.0], dtype=torch.float64))
    tensor([1., 2.], dtype=torch.float64)
    """
    alpha, full_steps = (p / gram.diagonal()).sqrt(), 0
    for _ in range(MOST_STEPS):
        slope = gram @ alpha - p / alpha
        step = torch.linalg.solve(gram + torch.diag(p / alpha.square()), -slope)
        # Divided by min p the function is self-concordant: with a decrement below 1/4, every full step squares it.
        full_steps += bool(full_steps) or bool(-slope @ step <= p.min() / 16)
        alpha = alpha + (step if full_steps else _shorten(gram, p, alpha, step, slope))
        if full_steps == ENOUGH_FULL_STEPS:
            break
    return alpha


def _shorten(gram: Tensor, p: Tensor, alpha: Tensor, step: Tensor, slope: Tensor) -> Tensor:
    """``step``, halved until alpha stays positive and the convex function falls by a quarter of what its slope says."""
    start = _value(gram, p, alpha)
    for _ in range(MOST_HALVINGS):
        moved = alpha + step
        if bool((moved > 0).all()) and bool(_value(gram, p, moved) - start <= 0.25 * slope @ step):
            break
        step = step / 2
    return step


def _value(gram: Tensor, p: Tensor, alpha: Tensor) -> Tensor:
    return alpha @ gram @ alpha / 2 - p @ alpha.log()
