"""A small convolutional network for grey images, fast on one processor."""

from torch import nn

from arml.lab.models.network import Trunk


def small(num_channels: int = 1, num_features: int = 64, *, bn_momentum: float = 0.1) -> Trunk:
    """Three 3x3 convolutions with BatchNorm and leaky ReLU, then the mean over all positions.

    Works for images from 4x4 pixels on; made for 8x8 and 28x28.

    Args:
        num_channels: Channels of the images.
        num_features: Channels of the last two layers; the first has half as many.
        bn_momentum: How fast BatchNorm's running statistics follow.
    """
    half = num_features // 2
    layers = {
        "layer1": _layer(num_channels, half, 1, bn_momentum),
        "layer2": _layer(half, num_features, 2, bn_momentum),
        "layer3": _layer(num_features, num_features, 2, bn_momentum),
        "pool": nn.AdaptiveAvgPool2d(1),
        "flat": nn.Flatten(),
    }
    return Trunk(layers, num_features, last_layer="layer3.0")


def _layer(inputs: int, outputs: int, stride: int, bn_momentum: float) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False),
        nn.BatchNorm2d(outputs, momentum=bn_momentum),
        nn.LeakyReLU(0.1),
    )
