"""The first layers of a trunk as a fixed function of the image."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from arml.lab.models.network import Trunk

CHUNK = 16
"""Images at a time on a processor: what layers hand on stays in its caches."""


class Frozen(nn.Sequential):
    """Layers that stay as they are: no gradients, and BatchNorm always by its running statistics.

    Where a convolution comes before it, BatchNorm is part of the convolution: y = W x + b scaled and shifted is again
    of that form.
    """

    def __init__(self, layers: Mapping[str, nn.Module]) -> None:
        super().__init__()
        for name, layer in layers.items():
            self.add_module(name, layer)
        self.train(False)
        _fold_norms(self)
        self.requires_grad_(False)
        # A quarter faster on processors.
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def train(self, mode: bool = True) -> "Frozen":
        """Stays in evaluation mode, whatever is asked for."""
        del mode
        super().train(False)
        return self

    def forward(self, x: Tensor) -> Tensor:
        """The layers one after the other, without a graph."""
        with torch.no_grad():
            return torch.cat([self._pass_on(chunk) for chunk in (x.split(CHUNK) if x.device.type == "cpu" else (x,))])

    def _pass_on(self, x: Tensor) -> Tensor:
        for layer in self:
            x = layer(x)
        return x.contiguous()  # the order that is fast in layers that learn


def _fold_norms(layers: nn.Module) -> None:
    """Makes BatchNorm part of the convolution before it, in ``layers`` and all inside."""
    for inside in layers.modules():
        if isinstance(inside, nn.Sequential):
            for i in range(len(inside) - 1):
                conv, norm = inside[i], inside[i + 1]
                if isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                    inside[i], inside[i + 1] = fuse_conv_bn_eval(conv, norm), nn.Identity()


def split_trunk(trunk: Trunk, count: int) -> tuple[Frozen, Trunk]:
    """The first ``count`` layers, frozen, and the rest as a trunk of its own.

    >>> from arml.lab.models import small
    >>> frozen, rest = split_trunk(small(1, 8), 1)
    >>> features = frozen(torch.zeros(2, 1, 8, 8))
    >>> features.shape, rest(features).shape
    (torch.Size([2, 4, 8, 8]), torch.Size([2, 8]))
    """
    layers = dict(trunk.named_children())
    first = list(layers)[:count]
    rest = {name: layer for name, layer in layers.items() if name not in first}
    if not 0 < count < len(layers) or not any(layer.state_dict() for layer in rest.values()):
        raise ValueError(
            f"At least one layer should be frozen and one with weights should be left. Got {count} to freeze of "
            f"{len(layers)}: {', '.join(layers)}."
        )
    return Frozen({name: layers[name] for name in first}), Trunk(
        rest, trunk.num_features, trunk.last_layer, draw_weights=False
    )


def freeze_first(trunk: Trunk, count: int) -> Trunk:
    """``trunk`` with its first ``count`` layers frozen, as one layer called ``frozen``."""
    frozen, rest = split_trunk(trunk, count)
    layers = {"frozen": frozen, **dict(rest.named_children())}
    return Trunk(layers, trunk.num_features, trunk.last_layer, draw_weights=False)
