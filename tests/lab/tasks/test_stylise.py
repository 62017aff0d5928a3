"""Styles by pixel statistics, whose they are, and where they go."""

import pytest
import torch
from torch import tensor
from torch.testing import assert_close

from arml.lab.tasks import pixel_adain, restyle
from arml.lab.tasks.stylise import draw_styles


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_statistics_by_hand():
    """0 and 2 have mean 1 and deviation 1; 10 and 16 have 13 and 3."""
    x, style = tensor([0.0, 2.0]).reshape(1, 1, 1, 2), tensor([16.0, 10.0]).reshape(1, 1, 1, 2)
    assert_close(pixel_adain(x, style).flatten(), tensor([10.0, 16.0]))


def test_each_channel_of_each_image_takes_the_statistics_of_the_style():
    x, style = torch.randn(4, 3, 6, 6, dtype=torch.float64), 5 * torch.rand(4, 3, 9, 9, dtype=torch.float64)
    styled = pixel_adain(x, style)
    for statistic in (torch.mean, torch.std):
        options = {"correction": 0} if statistic is torch.std else {}
        assert_close(statistic(styled, dim=(2, 3), **options), statistic(style, dim=(2, 3), **options))
    assert_close(pixel_adain(styled, x), x)


def test_a_flat_image_takes_the_mean():
    flat, style = torch.full((1, 1, 2, 2), 7.0), tensor([1.0, 3.0]).reshape(1, 1, 1, 2)
    assert_close(pixel_adain(flat, style), torch.full((1, 1, 2, 2), 2.0))
    assert_close(pixel_adain(style, flat), torch.full((1, 1, 1, 2), 7.0))


def test_styles_come_from_other_sources_all_alike():
    domains = tensor([0, 0, 1, 1, 2, 3])
    rows = tensor([2, 5]).repeat(1000)
    styles = draw_styles(domains, rows, seeded())
    assert styles.shape == (2000, 9)
    of_photo, of_art = styles[0::2].flatten().bincount(minlength=6), styles[1::2].flatten().bincount(minlength=6)
    assert_close(of_photo / 9000, tensor([0, 0, 0, 0, 1 / 2, 1 / 2]), rtol=0, atol=0.03)
    assert_close(of_art / 9000, tensor([0, 0, 1 / 3, 1 / 3, 1 / 3, 0]), rtol=0, atol=0.03)
    assert draw_styles(domains, rows[:0], seeded()).shape == (0, 9)
    with pytest.raises(ValueError, match=r"at least two\. Got one"):
        draw_styles(tensor([0, 1, 1]), tensor([1]), seeded())


def mean_of(x, style):
    return torch.zeros_like(x) + style.mean(dim=(1, 2, 3), keepdim=True)


def test_whole_images_and_tiles_by_hand():
    x = torch.arange(4.0).reshape(4, 1, 1, 1).repeat(1, 1, 3, 3)
    rows, by_tile = tensor([0, 2]), tensor([False, True])
    styles = tensor([[3, 1, 1, 1, 1, 1, 1, 1, 1], [0, 1, 2, 3, 0, 1, 2, 3, 0]])
    styled = restyle(x, rows, styles, by_tile, mean_of)
    assert styled[0].flatten().tolist() == [3] * 9
    assert styled[2].flatten().tolist() == styles[1].tolist()
    assert_close(styled[[1, 3]], x[[1, 3]], rtol=0, atol=0)
    assert x[0].sum() == 0, "the images that were given are not written to"


def test_nothing_is_asked_for_no_images():
    def refuse(x, style):
        raise AssertionError("no image to stylise")

    x = torch.randn(2, 1, 3, 3)
    none = torch.empty(0, dtype=torch.int64)
    assert_close(restyle(x, none, none.reshape(0, 9), none.bool(), refuse), x, rtol=0, atol=0)
