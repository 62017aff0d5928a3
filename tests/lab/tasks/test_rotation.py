"""Rotation, on a case worked by hand."""

import math

import pytest
import torch
from lab.tasks.pixel_networks import LN3, linear, pixels
from torch import tensor
from torch.testing import assert_close

from arml.lab.tasks.rotation import quarter_turns, rotation


def test_rotation():
    """A bright corner wanders over places 0, 2, 3, 1; the head reads it off with odds 3 : 1 : 1 : 1."""
    places = [0, 2, 3, 1]
    network = linear([[LN3 * (place == i) for i in range(4)] for place in places], head="rotation")
    assert_close(rotation(network, pixels([1, 0, 0, 0])), tensor(math.log(2), dtype=torch.float64))
    # An image that looks the same from all sides tells nothing.
    assert_close(rotation(network, pixels([1, 1, 1, 1])), tensor(math.log(4), dtype=torch.float64))


def test_quarter_turns_name_their_angle():
    x = torch.randn(3, 2, 5, 5)
    turned, angle = quarter_turns(x)
    assert turned.shape == (12, 2, 5, 5)
    for image, turn, original in zip(turned, angle.tolist(), x.repeat(4, 1, 1, 1), strict=True):
        assert_close(image.rot90(-turn, dims=(1, 2)), original)
    with pytest.raises(ValueError, match=r"square.*\(1, 1, 4, 6\)"):
        quarter_turns(torch.ones(1, 1, 4, 6))
