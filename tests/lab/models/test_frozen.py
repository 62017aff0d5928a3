"""Frozen layers are a fixed function of the image."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from arml.lab.models import resnet18, small
from arml.lab.models.efficientnet import efficientnet_lite0
from arml.lab.models.frozen import CHUNK, freeze_first, split_trunk


def make_trunk():
    torch.manual_seed(0)
    return small(1, 8)


def test_two_halves_make_the_whole():
    x = torch.randn(4, 1, 8, 8)
    whole = make_trunk().eval()(x)
    frozen, rest = split_trunk(make_trunk(), 2)
    assert_close(rest.eval()(frozen(x)), whole)
    assert_close(freeze_first(make_trunk(), 2).eval()(x), whole)


def test_training_changes_nothing_in_frozen_layers():
    trunk = freeze_first(make_trunk(), 2).train()
    before = {name: value.clone() for name, value in trunk.state_dict().items()}
    optimizer = torch.optim.SGD([p for p in trunk.parameters() if p.requires_grad], lr=0.1)
    trunk(torch.randn(4, 1, 8, 8)).square().sum().backward()
    optimizer.step()
    changed = [name for name, value in trunk.state_dict().items() if not torch.equal(value, before[name])]
    assert changed
    assert not any(name.startswith("frozen.") for name in changed)


@pytest.mark.parametrize("count", [0, 3, 9])
def test_something_is_left_to_train(count):
    if count == 3:
        count = len(list(make_trunk().children())) - 1  # pooling and flattening have no weights
    with pytest.raises(ValueError, match=f"Got {count} to freeze"):
        split_trunk(make_trunk(), count)


@pytest.mark.parametrize(
    "make",
    [partial(small, 3), resnet18, partial(efficientnet_lite0, pretrained=False)],
    ids=["small", "resnet18", "efficientnet-lite0"],
)
def test_norms_become_part_of_convolutions(make):
    trunk = lived_in(make())
    x = torch.randn(2 * CHUNK + 1, 3, 32, 32, dtype=torch.float64)  # more than are passed on at a time
    whole = trunk.eval()(x)
    frozen, rest = split_trunk(trunk, 2)
    assert_close(rest.eval()(frozen(x)), whole)
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in frozen.modules())
    assert not any(parameter.requires_grad for parameter in frozen.parameters())


def lived_in(trunk):
    """In float64, with statistics, scales and shifts other than those of a new network."""
    torch.manual_seed(1)
    for layer in trunk.double().modules():
        if isinstance(layer, nn.BatchNorm2d):
            for values in (layer.running_mean, layer.bias.data):
                values.normal_()
            for values in (layer.running_var, layer.weight.data):
                values.uniform_(0.5, 2)
    return trunk
