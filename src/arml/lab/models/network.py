"""A trunk that all tasks share, and one linear head per task."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


class Trunk(nn.Sequential):
    """Named layers that turn images [B, C, H, W] into features [B, num_features]."""

    def __init__(
        self, layers: Mapping[str, nn.Module], num_features: int, last_layer: str, *, draw_weights: bool = True
    ) -> None:
        """``last_layer`` names the last convolution or linear layer, where GradNorm measures gradients.

        Chen et al. take the last shared layer of weights, the release of ARML the last convolution of the last block.
        Layers that have weights already keep them with ``draw_weights=False``.
        """
        super().__init__(OrderedDict(layers))
        self.num_features, self.last_layer = num_features, last_layer
        for layer in self.modules() if draw_weights else ():
            if isinstance(layer, nn.Conv2d):  # variance 2 / (kernel area x output channels)
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")


class Network(nn.Module):
    """Images to features by a shared ``trunk``, features to outputs by ``heads`` that are not shared.

    >>> import torch
    >>> network = Network(nn.Flatten(), 64, {"class": 10, "rotation": 4})
    >>> network(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 10])
    >>> network.head("rotation", network.features(torch.zeros(2, 1, 8, 8))).shape
    torch.Size([2, 4])
    """

    def __init__(self, trunk: nn.Module, num_features: int, heads: Mapping[str, int]) -> None:
        """Heads start from Glorot's normal distribution, with biases of 0.

        Args:
            trunk: Images [B, C, H, W] -> features [B, num_features].
            num_features: Number of features F.
            heads: Number of outputs of every head; one of them is ``"class"``, for the main task.
        """
        super().__init__()
        if "class" not in heads:
            raise ValueError(f"One head should be named 'class', for the main task. Got {', '.join(heads) or 'none'}.")
        self.trunk = trunk
        self.heads = nn.ModuleDict({name: _head(num_features, outputs) for name, outputs in heads.items()})

    def features(self, x: Tensor) -> Tensor:
        """The features that all heads share, [B, F]."""
        features: Tensor = self.trunk(x)
        return features

    def head(self, name: str, features: Tensor) -> Tensor:
        """The outputs of one head for ``features`` [B, F], in at least float32: losses are small differences."""
        if name not in self.heads:
            raise ValueError(f"The network has no head {name!r}. Its heads are: {', '.join(self.heads)}.")
        outputs: Tensor = self.heads[name](features)
        return promote_to_float32(outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Class logits, [B, classes]."""
        return self.head("class", self.features(x))


def promote_to_float32(x: Tensor) -> Tensor:
    """``x`` in float32 if autocast or the network made it half precision, else ``x`` itself."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


@contextmanager
def keep_statistics(network: nn.Module) -> Iterator[None]:
    """Keeps BatchNorm's running statistics and counters as they are; it still normalises by the batch.

    For all passes of a step but one: running statistics then describe the images of the main pass, each counted once.
    Nothing is written to buffers, so graphs made before and inside remain valid for a later ``backward()``.
    """
    layers = [layer for layer in network.modules() if isinstance(layer, _BatchNorm)]
    tracked = [layer.track_running_stats for layer in layers]
    try:
        for layer in layers:
            layer.track_running_stats = False
        yield
    finally:
        for layer, before in zip(layers, tracked, strict=True):
            layer.track_running_stats = before


def _head(num_features: int, outputs: int) -> nn.Linear:
    head = nn.Linear(num_features, outputs)
    nn.init.xavier_normal_(head.weight)
    nn.init.zeros_(head.bias)
    return head
