"""A small convolutional network without BatchNorm, for images of several domains."""

import torch
from torch import nn

from arml.lab.models.network import Trunk

LARGE = 32
"""From this side of the images on, weights lie in memory channel by channel: a quarter faster on processors."""


def plain(num_channels: int, size: int, num_features: int = 64) -> Trunk:
    """Three 3x3 convolutions, the last two of which halve the image, then a linear layer over all positions.

    Nothing is normalised by the batch: with images of several domains in one batch, BatchNorm's statistics describe a
    mixture that no test image comes from. Features also tell positions apart. :func:`~arml.lab.models.small.small`
    takes the mean over all positions, and few labels hardly make up for that loss.

    Args:
        num_channels: Channels of the images.
        size: Height and width of the images, at least 8 and a multiple of 4.
        num_features: Features of the last layer; the convolutions have a quarter, half and half as many.
    """
    if size < 8 or size % 4 or num_features < 4:
        raise ValueError(
            f"`size` should be a multiple of 4 from 8 on, `num_features` at least 4. Got {size}, {num_features}."
        )
    quarter, half = num_features // 4, num_features // 2
    layers = {
        "layer1": _layer(num_channels, quarter, 1),
        "layer2": _layer(quarter, half, 2),
        "layer3": _layer(half, half, 2),
        "flat": nn.Flatten(),
        "linear": nn.Linear(half * (size // 4) ** 2, num_features),
        "activation": nn.LeakyReLU(0.1),
    }
    trunk = Trunk(layers, num_features, last_layer="linear")
    if size >= LARGE:
        trunk.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return trunk


def _layer(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, padding=1), nn.LeakyReLU(0.1))
