"""Shape bias: which images get whose style."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from arml.lab.data.augment import Augment
from arml.lab.data.batches import DomainBatch
from arml.lab.learners.jigen import JiGen, JiGenSettings
from arml.lab.learners.shape_bias import ShapeBias, ShapeBiasSettings
from arml.lab.models import Network

STILL = Augment(flip=False, shift=0, noise=0.0)
SOURCES = ("photo", "sketch")
COUNT = 400


class Watched(nn.Module):
    """A trunk that keeps the images it was shown: those of the sources, and then those of the target."""

    def __init__(self):
        super().__init__()
        self.passes = []

    def forward(self, x):
        self.passes.append(x)
        return x.flatten(1)


def a_batch():
    """Every image is of one number: the target's of 0, those of photo of 1, those of sketch of 2."""

    def images(count, value):
        return torch.full((count, 1, 3, 3), float(value)), torch.zeros(count, dtype=torch.int64)

    return DomainBatch(*images(6, 0), {"photo": images(COUNT, 1), "sketch": images(COUNT, 2)})


def plus_ten(x, style):
    """10 more than the mean of the style."""
    return torch.zeros_like(x) + style.mean(dim=(1, 2, 3), keepdim=True) + 10


def seen_by(kind, settings, *stylise, batch=None):
    learner = kind(settings, SOURCES, STILL, *stylise)
    network = Network(Watched(), 9, {"class": 2, **learner.heads})
    losses = learner.losses(network, batch or a_batch(), 0, torch.Generator().manual_seed(0))
    sources, target = network.trunk.passes
    return (target, *sources.split([COUNT, COUNT])), losses


def test_half_of_the_shuffled_images_have_the_style_of_the_other_source():
    """With a bias of 0, three images in four are shuffled."""
    settings = ShapeBiasSettings(bias=0.0, num_permutations=3)
    (target, photo, sketch), _ = seen_by(ShapeBias, settings, plus_ten)
    assert not target.any()
    for seen, own, other in ((photo, 1.0, 12.0), (sketch, 2.0, 11.0)):
        assert set(seen.unique().tolist()) == {own, other}, "never its own style, never the target's"
        assert_close(float((seen == other).all(3).all(2).float().mean()), 0.375, rtol=0, atol=0.07)


@pytest.mark.parametrize(("by_tile", "styles"), [(0.0, 1), (1.0, 3)])
def test_one_style_for_the_image_or_one_for_each_tile(by_tile, styles):
    """Every image of the other source has a value of its own: there are as many values in an image as styles."""
    settings = ShapeBiasSettings(bias=0.0, num_permutations=3, stylised=1.0, by_tile=by_tile)
    batch = a_batch()
    for x, _ in batch.sources.values():
        x += torch.arange(COUNT).reshape(-1, 1, 1, 1) / COUNT
    (_, photo, _), _ = seen_by(ShapeBias, settings, plus_ten, batch=batch)
    restyled = photo[(photo > 9).flatten(1).all(1)].flatten(1)
    assert len(restyled) > COUNT / 2
    counts = [len(image.unique()) for image in restyled]
    assert min(counts) >= styles
    assert max(counts) <= (1 if styles == 1 else 9)


def test_ordered_images_are_never_restyled():
    settings = ShapeBiasSettings(bias=1.0, num_permutations=3, stylised=1.0)
    (target, photo, sketch), _ = seen_by(ShapeBias, settings, plus_ten)
    assert [part.unique().tolist() for part in (target, photo, sketch)] == [[0], [1], [2]]


def test_pixel_statistics_are_the_default():
    settings = ShapeBiasSettings(bias=0.0, num_permutations=3, stylised=1.0)
    (_, photo, _), _ = seen_by(ShapeBias, settings)
    assert set(photo.unique().tolist()) == {1.0, 2.0}, "flat images take the mean of the style"


def test_without_style_it_is_jigen():
    """The first draws are the same, so the orders are, too."""
    plain, styled = JiGenSettings(bias=0.5), ShapeBiasSettings(bias=0.5, stylised=0.0)
    batch = DomainBatch(
        torch.randn(6, 1, 3, 3),
        torch.zeros(6, dtype=torch.int64),
        {name: (torch.randn(COUNT, 1, 3, 3), torch.zeros(COUNT, dtype=torch.int64)) for name in SOURCES},
    )
    torch.manual_seed(0)
    ours = seen_by(ShapeBias, styled, batch=batch)
    torch.manual_seed(0)
    assert_close(ours, seen_by(JiGen, plain, batch=batch), rtol=0, atol=0)


def test_errors():
    with pytest.raises(ValueError, match=r"at least two.*\['photo'\]"):
        ShapeBias(ShapeBiasSettings(), ["photo"], STILL)
    with pytest.raises(ValueError, match=r"`stylised`.*2"):
        ShapeBiasSettings(stylised=2)
    with pytest.raises(ValueError, match=r"`bias`.*2"):
        ShapeBiasSettings(bias=2)
