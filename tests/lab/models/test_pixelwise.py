"""Pixels as rows: the same numbers as convolutions on maps."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from arml.lab.models.pixelwise import Pixelwise, RowConv


@pytest.mark.parametrize("bias", [False, True])
def test_rows_of_pixels_are_what_convolutions_see(bias):
    """Outputs, gradients, second derivatives and running statistics of a 1x1 convolution on maps."""
    torch.manual_seed(0)
    x = torch.randn(4, 3, 5, 2, dtype=torch.float64)
    on_maps = nn.Sequential(nn.Conv2d(3, 6, 1, bias=bias), nn.BatchNorm2d(6), nn.ReLU6()).double()
    on_rows = Pixelwise(RowConv(3, 6, bias=bias), nn.BatchNorm1d(6), nn.ReLU6()).double()
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
