"""Adaptive loss balancing by the logarithm."""

from dataclasses import dataclass

import torch
from torch import Tensor

from arml.gradients.signals import Signals
from arml.methods.base import Method, Weights, check_positive, prepend_main, warn_not_positive


@dataclass(frozen=True)
class AdaLoss(Method[Weights]):
    r"""Trains on the logarithm of every auxiliary loss: :math:`L_0 + \sum_k \log(L_k + \epsilon)`.

    Its gradient is that of weighted losses with :math:`w_k = 1 / (L_k + \epsilon)`. Hu et al., *Learning Anytime
    Predictions in Neural Networks via Adaptive Loss Balancing*, AAAI 2019, as the ARML paper uses it.

    A loss that is not positive has no logarithm: its weight stays as it was, with a warning. The ARML release adds 1 to
    loss number 2 instead; here the task owns its range (write 1 - cosine, not -cosine).
    """

    epsilon: float = 1e-6

    def __post_init__(self) -> None:
        check_positive(self, epsilon=self.epsilon)

    def init(self, like: Tensor) -> Weights:
        """Weights of 1."""
        return Weights(torch.ones_like(like))

    def update(self, state: Weights, signals: Signals) -> tuple[Tensor, Weights]:
        """The reciprocal of every auxiliary loss."""
        losses, here = signals.losses[1:], signals.seen()[1:]
        positive = losses > 0
        if bool((here & ~positive).any()):
            warn_not_positive(self, losses[here & ~positive])
        alpha = torch.where(here & positive, 1 / (losses.clamp(min=0) + self.epsilon), state.weights[1:])
        weights = prepend_main(alpha)
        return weights, Weights(weights)
