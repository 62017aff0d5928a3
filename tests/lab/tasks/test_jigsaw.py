"""Tiles, orders and permutations."""

import math

import pytest
import torch
from torch import nn, tensor
from torch.testing import assert_close

from arml.lab.models import Network
from arml.lab.tasks import jigsaw, permutation_set, shuffle_tiles
from arml.lab.tasks.jigsaw import Colours, crop_to_grid, draw_orders, grey_tiles, put_together, tiles


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def permutations():
    return permutation_set()


def test_thirty_permutations_that_differ_much_from_each_other_and_from_the_order(permutations):
    assert permutations.shape == (31, 9)
    assert permutations[0].tolist() == list(range(9))
    assert bool((permutations.sort(dim=1).values == torch.arange(9)).all())
    distances = (permutations[:, None] != permutations).sum(dim=2) + 9 * torch.eye(31, dtype=torch.int64)
    assert int(distances.min()) == 7
    assert bool((permutations[1:] != torch.arange(9)).any(dim=1).all()), "the order itself is there once"


def test_the_first_permutations_are_as_far_apart_as_can_be():
    """Nine permutations can differ in all places, as the rows of a Latin square do; greedy search finds a few."""
    distances = (permutation_set(3)[:, None] != permutation_set(3)).sum(dim=2)
    assert_close(distances, 9 * (1 - torch.eye(4, dtype=torch.int64)))


def test_the_seed_chooses_the_set(permutations):
    assert_close(permutation_set(4, seed=0), permutations[:5], rtol=0, atol=0)
    assert not torch.equal(permutation_set(4, seed=1), permutations[:5])
    with pytest.raises(ValueError, match=r"`count`.*Got 0"):
        permutation_set(0)


def test_tiles_by_hand():
    """A 6 x 6 image of the numbers of its tiles."""
    x = torch.arange(9.0).reshape(3, 3).repeat_interleave(2, 0).repeat_interleave(2, 1).reshape(1, 1, 6, 6)
    assert tiles(x).shape == (1, 9, 1, 2, 2)
    assert tiles(x).flatten(2).unique_consecutive().tolist() == list(range(9))
    order = tensor([[4, 0, 8, 2, 1, 3, 5, 7, 6]])
    assert tiles(shuffle_tiles(x, order)).flatten(2)[..., 0].long().tolist() == order.tolist()


def test_tiles_of_images_that_are_not_square_go_back_where_they_were():
    x = torch.randn(2, 3, 6, 9, dtype=torch.float64)
    assert_close(put_together(tiles(x)), x, rtol=0, atol=0)
    assert_close(tiles(x)[:, 5], x[:, :, 2:4, 6:9], rtol=0, atol=0)  # second row, last column
    order = torch.stack([torch.randperm(9), torch.randperm(9)])
    assert_close(shuffle_tiles(shuffle_tiles(x, order), order.argsort(dim=1)), x, rtol=0, atol=0)


def test_the_middle_is_kept():
    x = torch.arange(8.0 * 7).reshape(1, 1, 8, 7)
    assert_close(crop_to_grid(x), x[:, :, 1:7, 0:6], rtol=0, atol=0)
    assert crop_to_grid(x[:, :, :6, :6]).shape == (1, 1, 6, 6)
    with pytest.raises(ValueError, match=r"at least 3 pixels.*\(1, 1, 8, 2\)"):
        crop_to_grid(x[..., :2])


def test_orders_are_drawn_alike_but_for_the_bias():
    orders = draw_orders(31_000, 31, 0.9, seeded())
    counts = orders.bincount(minlength=31)
    assert_close(float((orders > 0).float().mean()), 0.1 * 30 / 31, rtol=0.05, atol=0)
    assert int(counts[1:].min()) > 60  # 100 are expected
    assert int(counts[1:].max()) < 140
    assert not draw_orders(50, 31, 1.0, seeded()).any()
    assert len(draw_orders(50, 31, 0.0, seeded()).unique()) > 15


def test_tiles_turn_grey_one_by_one():
    red = tensor([1.0, 0.0, 0.0]).reshape(1, 3, 1, 1).expand(2000, 3, 6, 6)
    mixed = grey_tiles(red, 0.1, seeded())
    parts = tiles(mixed)
    grey = (parts == parts[:, :, :1]).flatten(2).all(2)
    assert_close(float(grey.float().mean()), 0.1, rtol=0.1, atol=0)
    assert_close(parts[grey], torch.full_like(parts[grey], 0.299))
    assert_close(parts[~grey], tiles(red)[~grey], rtol=0, atol=0)
    assert len(grey.unique(dim=0)) > 20, "drawn for every tile of every image"


def test_grey_by_hand():
    pixel = tensor([0.5, 1.0, -1.0]).reshape(1, 3, 1, 1).expand(1, 3, 3, 3)
    value = 0.5 * 0.299 + 0.587 - 0.114
    assert_close(grey_tiles(pixel, 1.0, seeded()), torch.full((1, 3, 3, 3), value))
    one = torch.randn(2, 1, 3, 3)
    generator = seeded()
    assert_close(grey_tiles(one, 1.0, generator), one, rtol=0, atol=0)
    assert torch.equal(generator.get_state(), seeded().get_state()), "nothing is drawn"
    with pytest.raises(ValueError, match=r"1 or 3 channels.*\(2, 4, 3, 3\)"):
        grey_tiles(torch.zeros(2, 4, 3, 3), 0.5, seeded())


def test_the_loss_of_every_image_by_hand():
    """Features (ln 3, 0) say odds 3 : 1 for order 0."""
    network = Network(nn.Flatten(), 2, {"class": 2, "jigsaw": 2}).double()
    network.heads["jigsaw"].weight.data = torch.eye(2, dtype=torch.float64)
    features = tensor([[math.log(3), 0], [math.log(3), 0]], dtype=torch.float64)
    expected = tensor([math.log(4 / 3), math.log(4)], dtype=torch.float64)
    assert_close(jigsaw(network, features, tensor([0, 1])), expected)


def test_grey_is_that_of_the_pixels_however_channels_were_scaled():
    pixels = torch.rand(2, 3, 6, 6, dtype=torch.float64)
    colours = Colours((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    mean, std = (torch.tensor(part, dtype=torch.float64)[:, None, None] for part in colours)
    grey = grey_tiles((pixels - mean) / std, 1.0, torch.Generator(), colours) * std + mean
    torch.testing.assert_close(grey, grey_tiles(pixels, 1.0, torch.Generator()))
    torch.testing.assert_close(grey[:, 0], grey[:, 2])
