"""ResNet18: names, counts, and the forward pass written out."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from arml.lab.models import Network, small, wrn
from arml.lab.models.mlp import mlp
from arml.lab.models.resnet import BasicBlock, block_outputs, resnet18

STAGES = {"layer1": (64, 64, 1), "layer2": (64, 128, 2), "layer3": (128, 256, 2), "layer4": (256, 512, 2)}


def torchvision_shapes() -> dict[str, list[int]]:
    """Every entry of torchvision's resnet18 without ``fc``, in order."""

    def norm(name, channels):
        vectors = ("weight", "bias", "running_mean", "running_var")
        return {f"{name}.{v}": [channels] for v in vectors} | {f"{name}.num_batches_tracked": []}

    shapes = {"conv1.weight": [64, 3, 7, 7]} | norm("bn1", 64)
    for stage, (inputs, outputs, stride) in STAGES.items():
        for block, channels in enumerate((inputs, outputs)):
            name = f"{stage}.{block}"
            shapes |= {f"{name}.conv1.weight": [outputs, channels, 3, 3]} | norm(f"{name}.bn1", outputs)
            shapes |= {f"{name}.conv2.weight": [outputs, outputs, 3, 3]} | norm(f"{name}.bn2", outputs)
            if block == 0 and stride == 2:
                shapes |= {f"{name}.downsample.0.weight": [outputs, inputs, 1, 1]}
                shapes |= norm(f"{name}.downsample.1", outputs)
    return shapes


def test_names_and_shapes_are_torchvisions():
    state = resnet18().state_dict()
    assert len(state) == 120
    assert [(name, list(x.shape)) for name, x in state.items()] == list(torchvision_shapes().items())


def test_the_number_of_parameters_is_the_published_one():
    trunk = resnet18()
    assert trunk.num_features == 512
    assert sum(p.numel() for p in trunk.parameters()) == 11_689_512 - 513_000
    assert sum(p.numel() for p in Network(trunk, 512, {"class": 1000}).parameters()) == 11_689_512


def test_the_last_layer_is_a_part_with_weights():
    trunk = resnet18()
    assert trunk.get_submodule(trunk.last_layer) is trunk.layer4[1].conv2


def without_norm(channels):
    del channels
    return nn.Identity()


def test_a_block_by_hand():
    """A sum over the whole image is 10; a quarter of it taken off leaves 3 - 2.5 and 4 - 2.5."""
    block = BasicBlock(1, 1, 1, without_norm)
    nn.init.ones_(block.conv1.weight)
    nn.init.zeros_(block.conv2.weight).data[0, 0, 1, 1] = -0.25
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).reshape(1, 1, 2, 2)
    assert block.downsample is None
    assert block(x).flatten().tolist() == [0, 0, 0.5, 1.5]
    nn.init.constant_(block.conv1.weight, -1)
    assert_close(block(x), x)


def test_a_block_that_halves_the_image_by_hand():
    """The shortcut sees every second pixel; the residual is the sum around it."""
    block = BasicBlock(1, 2, 2, without_norm)
    nn.init.ones_(block.conv1.weight)
    nn.init.zeros_(block.conv2.weight).data[0, 1, 1, 1] = 1
    block.downsample[0].weight.data = torch.tensor([100.0, 1000.0]).reshape(2, 1, 1, 1)
    x = torch.tensor([[1.0, 2, 0, 0], [3, 4, 0, 0], [0, 0, 0, 0], [0, 0, 0, 5]]).reshape(1, 1, 4, 4)
    residual = torch.tensor([[1.0 + 2 + 3 + 4, 2 + 4], [3 + 4, 4 + 5]])
    every_second = torch.tensor([[1.0, 0], [0, 0]])
    assert_close(block(x)[0], torch.stack([residual + 100 * every_second, 1000 * every_second]))


def normalised(layer, x):
    """Batch statistics."""
    mean, variance = x.mean((0, 2, 3), keepdim=True), x.var((0, 2, 3), correction=0, keepdim=True)
    return (x - mean) / (variance + 1e-5).sqrt() * layer.weight[:, None, None] + layer.bias[:, None, None]


def written_out(trunk, x):
    """The outputs of all blocks."""
    x = F.max_pool2d(normalised(trunk.bn1, F.conv2d(x, trunk.conv1.weight, stride=2, padding=3)).relu(), 3, 2, 1)
    outputs = []
    for stage, (_, _, stride) in STAGES.items():
        for number, block in enumerate(trunk.get_submodule(stage)):
            step = stride if number == 0 else 1
            inner = normalised(block.bn1, F.conv2d(x, block.conv1.weight, stride=step, padding=1)).relu()
            inner = normalised(block.bn2, F.conv2d(inner, block.conv2.weight, padding=1))
            if step == 2:
                x = normalised(block.downsample[1], F.conv2d(x, block.downsample[0].weight, stride=2))
            x = (x + inner).relu()
            outputs.append(x)
    return outputs


def test_the_forward_pass_written_out():
    trunk = resnet18().double()
    x = torch.randn(2, 3, 40, 48, dtype=torch.float64)
    expected = written_out(trunk, x)
    assert [output.shape[1] for output in expected] == [64, 64, 128, 128, 256, 256, 512, 512]
    assert_close(block_outputs(trunk, x), expected)
    assert_close(trunk(x), expected[-1].mean((2, 3)))


@pytest.mark.parametrize("size", [32, 33, 64])
def test_images_of_any_size_and_colour(size):
    trunk = resnet18(1, bn_momentum=0.5)
    assert trunk(torch.randn(2, 1, size, size)).shape == (2, 512)
    assert {layer.momentum for layer in trunk.modules() if isinstance(layer, nn.BatchNorm2d)} == {0.5}


def test_weights_start_as_torchvisions():
    """Convolutions from N(0, 2 / (kernel area x output channels)), BatchNorm as the identity."""
    trunk = resnet18()
    for layer in trunk.modules():
        if isinstance(layer, nn.Conv2d):
            spread = (2 / (layer.kernel_size[0] ** 2 * layer.out_channels)) ** 0.5
            assert_close(layer.weight.std(), torch.tensor(spread), rtol=0.03, atol=0)
        elif isinstance(layer, nn.BatchNorm2d):
            assert bool((layer.weight == 1).all())
            assert not layer.bias.any()
            assert (layer.momentum, layer.eps) == (0.1, 1e-5)


@pytest.mark.parametrize(
    ("trunk", "names"), [(small(3), ["layer1", "layer2", "layer3"]), (wrn(10, 1), ["group1", "group2", "group3"])]
)
def test_other_trunks_give_what_their_layers_give(trunk, names):
    x = torch.randn(4, 3, 8, 8)
    seen = {}
    for name in names:
        trunk.get_submodule(name).register_forward_hook(lambda _, __, y, name=name: seen.update({name: y}))
    trunk(x)
    expected = [seen[name] for name in names]
    assert_close(block_outputs(trunk, x), expected)


def test_a_trunk_without_blocks_is_refused():
    with pytest.raises(ValueError, match=r"resnet18 and small.*Got linear1, activation1, dropout1"):
        block_outputs(mlp(3, num_layers=1), torch.ones(2, 3))
