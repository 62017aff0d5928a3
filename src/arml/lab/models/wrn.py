"""Wide residual networks, as used for semi-supervised learning on CIFAR-10 and SVHN."""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor, nn

from arml.lab.models.network import Trunk

SLOPE = 0.1
"""Slope of leaky ReLU left of zero."""

_Norm: TypeAlias = Callable[[int], nn.Module]


def wrn(depth: int, width: int, num_channels: int = 3, *, bn_momentum: float = 0.001, bn_eps: float = 1e-3) -> Trunk:
    """The trunk of a WRN-depth-width: 64 x width features.

    Zagoruyko and Komodakis, *Wide Residual Networks*, BMVC 2016, in the form of Oliver et al., *Realistic Evaluation of
    Deep Semi-Supervised Learning Algorithms*, NeurIPS 2018: leaky ReLU, no dropout, and only the very first block
    applies its first BatchNorm and activation to the shortcut as well.

    The PyTorch port behind ARML's release intends to use this BatchNorm, but does not pass the settings on and runs
    with PyTorch's defaults (momentum 0.1, eps 1e-5).

    Args:
        depth: Layers with weights along the longest path, 6 n + 4 with n blocks in each of the three groups.
        width: Factor on the 16, 32 and 64 channels of the groups.
        num_channels: Channels of the images.
        bn_momentum: How fast running statistics follow. Oliver et al. use 0.001 in runs of 500 000 steps; in short runs
            such statistics would still remember the start.
        bn_eps: Added to the variance.
    """
    if depth < 10 or depth % 6 != 4:
        raise ValueError(f"`depth` should be 10, 16, 22, 28 or another 6 n + 4. Got {depth}.")
    if width < 1:
        raise ValueError(f"`width` should be at least 1. Got {width}.")
    norm = partial(nn.BatchNorm2d, momentum=bn_momentum, eps=bn_eps)
    num_features, blocks = 64 * width, (depth - 4) // 6
    layers = {
        "stem": nn.Conv2d(num_channels, 16, 3, padding=1, bias=False),
        "group1": _group(16, 16 * width, 1, blocks, norm, activate_shortcut=True),
        "group2": _group(16 * width, 32 * width, 2, blocks, norm),
        "group3": _group(32 * width, num_features, 2, blocks, norm),
        "norm": norm(num_features),
        "activation": nn.LeakyReLU(SLOPE),
        "pool": nn.AdaptiveAvgPool2d(1),
        "flat": nn.Flatten(),
    }
    # Channels next to each other in memory: a step takes a tenth to a sixth less time (benchmarks/step.py).
    trunk = Trunk(layers, num_features, last_layer=f"group3.{blocks - 1}.residual.3")
    trunk.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch does not annotate it
    return trunk


class _Block(nn.Module):
    """x -> shortcut(x) + conv(act(norm(conv(act(norm(x))))))."""

    def __init__(self, inputs: int, outputs: int, stride: int, norm: _Norm, *, activate_shortcut: bool) -> None:
        super().__init__()
        self.activate_shortcut = activate_shortcut
        self.before = nn.Sequential(norm(inputs), nn.LeakyReLU(SLOPE))
        self.residual = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False),
            norm(outputs),
            nn.LeakyReLU(SLOPE),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
        )
        same_shape = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if same_shape else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        activated = self.before(x)
        total: Tensor = self.shortcut(activated if self.activate_shortcut else x) + self.residual(activated)
        return total


def _group(
    inputs: int, outputs: int, stride: int, blocks: int, norm: _Norm, *, activate_shortcut: bool = False
) -> nn.Sequential:
    first = _Block(inputs, outputs, stride, norm, activate_shortcut=activate_shortcut)
    rest = [_Block(outputs, outputs, 1, norm, activate_shortcut=False) for _ in range(blocks - 1)]
    return nn.Sequential(first, *rest)
