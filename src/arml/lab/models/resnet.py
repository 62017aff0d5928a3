"""ResNet18, as used for faces and for the domains of PACS, with torchvision's parameter names."""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from torch import Tensor, nn

from arml.lab.models.network import Trunk

_Norm: TypeAlias = Callable[[int], nn.Module]


def resnet18(num_channels: int = 3, *, bn_momentum: float = 0.1) -> Trunk:
    """The trunk of a ResNet18: 512 features of images from 32x32 pixels on; made for 224x224.

    He et al., *Deep Residual Learning for Image Recognition*, CVPR 2016, table 1. Layers are named, and weights drawn,
    as in torchvision, so that public weights fit (see :func:`arml.lab.models.weights.load_weights`). The last layer
    ``fc`` is left out, since heads belong to the tasks.

    Args:
        num_channels: Channels of the images; public weights are for 3.
        bn_momentum: How fast BatchNorm's running statistics follow.
    """
    norm = partial(nn.BatchNorm2d, momentum=bn_momentum)
    layers = {
        "conv1": nn.Conv2d(num_channels, 64, 7, 2, padding=3, bias=False),
        "bn1": norm(64),
        "relu": nn.ReLU(),
        "maxpool": nn.MaxPool2d(3, 2, padding=1),
        "layer1": _stage(64, 64, 1, norm),
        "layer2": _stage(64, 128, 2, norm),
        "layer3": _stage(128, 256, 2, norm),
        "layer4": _stage(256, 512, 2, norm),
        "avgpool": nn.AdaptiveAvgPool2d(1),
        "flat": nn.Flatten(),
    }
    return Trunk(layers, num_features=512, last_layer="layer4.1.conv2")


def block_outputs(trunk: Trunk, x: Tensor) -> list[Tensor]:
    """The images after every block of ``trunk``, in order, each [B, channels, height, width].

    A block is one of the eight residual blocks of :func:`resnet18`. In a trunk without such blocks, it is every layer
    that is itself a sequence, such as the three of :func:`arml.lab.models.small.small`.

    >>> import torch
    >>> from arml.lab.models import small
    >>> [tuple(output.shape) for output in block_outputs(small(1, 8), torch.zeros(2, 1, 8, 8))]
    [(2, 4, 8, 8), (2, 8, 4, 4), (2, 8, 2, 2)]
    """
    parts = [part for layer in trunk for part in _parts(layer)]
    blocks = [number for number, part in enumerate(parts) if isinstance(part, nn.Sequential | BasicBlock)]
    if not blocks:
        raise ValueError(f"The trunk should have blocks, as resnet18 and small do. Got {', '.join(_names(trunk))}.")
    outputs = [x := part(x) for part in parts[: blocks[-1] + 1]]  # what comes after the last block is not needed
    return [outputs[number] for number in blocks]


class BasicBlock(nn.Module):
    """x -> relu(shortcut(x) + bn2(conv2(relu(bn1(conv1(x)))))); the shortcut is ``downsample`` or the identity."""

    def __init__(self, inputs: int, outputs: int, stride: int, norm: _Norm) -> None:
        """``stride`` belongs to the first convolution; ``norm`` makes a normalisation for a number of channels."""
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = norm(outputs)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = norm(outputs)
        same_shape = inputs == outputs and stride == 1
        self.downsample = None if same_shape else _projection(inputs, outputs, stride, norm)

    def forward(self, x: Tensor) -> Tensor:
        """Maps [B, inputs, H, W] to [B, outputs, H / stride, W / stride]."""
        residual = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        shortcut = x if self.downsample is None else self.downsample(x)
        total: Tensor = self.relu(shortcut + residual)
        return total


def _projection(inputs: int, outputs: int, stride: int, norm: _Norm) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), norm(outputs))


def _stage(inputs: int, outputs: int, stride: int, norm: _Norm) -> nn.Sequential:
    return nn.Sequential(BasicBlock(inputs, outputs, stride, norm), BasicBlock(outputs, outputs, 1, norm))


def _parts(layer: nn.Module) -> list[nn.Module]:
    """The residual blocks of a layer that consists of them, else the layer itself."""
    children = list(layer.children())
    return children if any(isinstance(child, BasicBlock) for child in children) else [layer]


def _names(trunk: Trunk) -> list[str]:
    return [name for name, _ in trunk.named_children()]
