"""Target-aware weighted training."""

from dataclasses import dataclass

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.methods.base import (
    Method,
    Needs,
    Weights,
    check_positive,
    cosines_with_main,
    main_direction,
    steerable_tasks,
)


@dataclass(frozen=True)
class TAWT(Method[Weights]):
    r"""Mirror descent on the weights of all tasks, the main one included, towards tasks that agree with the main one.

    .. math:: w_i \leftarrow w_i \exp(\beta \cos(g_i, g_0)), \quad \text{then scaled to the sum } 1 + K

    Chen et al., *Weighted Training for Cross-Task Learning*, ICLR 2022, in the joint training of the authors' release,
    which takes the cosine for the paper's inverse Hessian. The main task has a cosine of 1 and no task has more: its
    weight grows as long as the others do not point in the same direction, and only the number of updates stops that.
    It can reach 1 + K, and the gradient of the main task grows with it.
    The release updates once per epoch, in four epochs, with a step size of 1. Here updates are more frequent and the
    step size is smaller.

    A gradient of zero has a cosine of 0. Tasks that are missing keep their weight; the others keep their sum.
    """

    lr: float = 0.1
    """beta, the step size of the logarithm of the weights."""

    def __post_init__(self) -> None:
        check_positive(self, lr=self.lr)

    def init(self, like: Tensor) -> Weights:
        """Weights of 1."""
        return Weights(torch.ones_like(like))

    def needs(self) -> Needs:
        """The norms."""
        return Needs(norms=True)

    def directions(self, state: Weights) -> Tensor:
        """c = e_0."""
        return main_direction(state.weights)

    def update(self, state: Weights, signals: Signals) -> tuple[Tensor, Weights]:
        """One step of the main task and the auxiliary tasks that are present; their sum does not change."""
        here = steerable_tasks(signals)
        if not bool(here.any()):
            return state.weights, state
        here = torch.cat([here.new_ones(1), here])
        old, cosines = state.weights[here], cosines_with_main(signals)[here]
        # Relative to the largest exponent: the exponential of a long step stays finite, and the sum above 0.
        logs = old.log() + self.lr * signals.stride * cosines
        weights = state.weights.clone()
        weights[here] = old.sum() * torch.softmax(logs, 0)
        return weights, Weights(weights)
