"""A teacher: a copy of the network that follows it slowly."""

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from arml.lab.models.network import Network, keep_statistics


class EMATeacher:
    r"""Parameters that are an exponential moving average of a network's.

    .. math:: \theta' \leftarrow d_t \theta' + (1 - d_t)\, \theta, \quad d_t = \min(1 - 1 / (t + 1),\ d)

    where t is the number of earlier updates. Until :math:`d_t` reaches d, the teacher is the plain mean of all networks
    that it was updated with. Tarvainen and Valpola, *Mean teachers are better role models*, NeurIPS 2017.

    Buffers are neither averaged nor needed: the teacher normalises by the batch, as in training, and leaves its own
    running statistics alone. It has no gradients.
    """

    def __init__(self, network: Network, decay: float = 0.95) -> None:
        """Starts as a copy of ``network``; ``decay`` is d."""
        if not 0 <= decay < 1:
            raise ValueError(f"EMATeacher: `decay` should be in [0, 1). Got {decay!r}.")
        self.decay, self.updates = decay, 0
        self.network = deepcopy(network).train().requires_grad_(False)

    @torch.no_grad()
    def update(self, network: Network) -> None:
        """Moves the teacher one step towards ``network``."""
        decay = min(1 - 1 / (self.updates + 1), self.decay)
        for average, parameter in zip(self.network.parameters(), network.parameters(), strict=True):
            average.lerp_(parameter, 1 - decay)
        self.updates += 1

    @torch.no_grad()
    def logits(self, x: Tensor) -> Tensor:
        """Class logits, [B, classes]."""
        with keep_statistics(self.network):
            return self.network.forward(x)

    @torch.no_grad()
    def features(self, x: Tensor) -> Tensor:
        """Features, [B, F]."""
        with keep_statistics(self.network):
            return self.network.features(x)

    def state_dict(self) -> dict[str, Any]:
        """The copy and the number of updates."""
        return {"network": self.network.state_dict(), "updates": self.updates}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues exactly where ``state`` was taken."""
        self.network.load_state_dict(state["network"])
        self.updates = state["updates"]
