"""The network without BatchNorm."""

import pytest
import torch
from torch import nn

from arml.lab.models.aggregation import aggregated_network
from arml.lab.models.plain import plain


def test_shapes_and_number_of_parameters():
    trunk = plain(1, 16, 64)
    assert trunk(torch.zeros(5, 1, 16, 16)).shape == (5, 64)
    convolutions = (9 * 1 * 16 + 16) + (9 * 16 * 32 + 32) + (9 * 32 * 32 + 32)
    assert sum(p.numel() for p in trunk.parameters()) == convolutions + 32 * 16 * 64 + 64
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in trunk.modules())
    assert trunk.last_layer == "linear"


def test_an_image_does_not_depend_on_its_batch():
    trunk, x = plain(3, 8, 16), torch.randn(4, 3, 8, 8)
    torch.testing.assert_close(trunk(x)[:1], trunk(x[:1]))


def test_places_are_told_apart():
    trunk, x = plain(1, 8, 16), torch.zeros(1, 1, 8, 8)
    x[0, 0, 2, 2] = 1
    assert not torch.allclose(trunk(x), trunk(x.flip(-1).flip(-2)))


def test_the_order_in_memory_makes_no_difference():
    trunk, x = plain(3, 32, 16).double(), torch.randn(2, 3, 32, 32, dtype=torch.float64)
    weight = trunk.layer2[0].weight
    assert weight.is_contiguous(memory_format=torch.channels_last)
    expected = trunk(x)
    for parameter in trunk.parameters():
        parameter.data = parameter.data.clone(memory_format=torch.contiguous_format)
    torch.testing.assert_close(trunk(x), expected)


def test_it_can_be_aggregated():
    network = aggregated_network(plain(1, 16, 32), 10, ["a", "b"])
    assert network(torch.zeros(2, 1, 16, 16)).shape == (2, 10)


@pytest.mark.parametrize(("size", "features"), [(4, 64), (18, 64), (16, 3)])
def test_errors_repeat_what_was_given(size, features):
    with pytest.raises(ValueError, match=rf"multiple of 4 from 8 on.*Got {size}, {features}\."):
        plain(1, size, features)
