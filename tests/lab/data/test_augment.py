"""Random changes of images: laws for every image, and a twin with a Python loop."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F
from torch.testing import assert_close

from arml.lab.data import augment
from arml.lab.data.augment import Augment, crop

seeds = st.integers(0, 10_000)
examples = settings(max_examples=40, deadline=None)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(count: int = 200, shape: tuple[int, int, int] = (3, 6, 8)) -> Tensor:
    """Every pixel has a value of its own, so that a moved one is recognised; none is 0."""
    return 1 + torch.arange(count * shape[0] * shape[1] * shape[2], dtype=torch.float64).reshape(count, *shape)


def moved_by_hand(image: Tensor, down: int, right: int, m: int) -> Tensor:
    padded = F.pad(image[None], (m, m, m, m), mode="reflect")[0]
    height, width = image.shape[1:]
    return padded[:, m - down : m - down + height, m - right : m - right + width]


CHANGES = {
    "flip": lambda x, g: augment.flip(x, g),
    "shift": lambda x, g: augment.shift(x, 2, g),
    "noise": lambda x, g: augment.noise(x, 0.1, g),
    "cutout": lambda x, g: augment.cutout(x, 3, g),
    "all": Augment(flip=True, shift=2, noise=0.15),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_every_change_owes_us(name):
    change, x = CHANGES[name], images()
    before, g = x.clone(), generator()
    torch.manual_seed(1)
    out = change(x, g)
    assert_close(x, before)
    assert out.shape == x.shape
    assert out.dtype == x.dtype
    torch.manual_seed(2)
    assert_close(change(x, generator()), out)  # the generator alone decides
    assert not torch.equal(change(x, g), out)  # and has moved on
    assert not torch.equal(change(x, generator(5)), out)
    assert change(x.float(), generator()).dtype == torch.float32
    assert change(x[:0], generator()).shape == x[:0].shape


@pytest.mark.parametrize("name", CHANGES)
def test_images_of_a_batch_are_drawn_apart(name):
    same = images(1).expand(200, -1, -1, -1)
    out = CHANGES[name](same, generator())
    assert len({image.numpy().tobytes() for image in out}) > 1


@examples
@given(seed=seeds)
def test_an_image_is_mirrored_or_left_alone(seed):
    x = images(30)
    out = augment.flip(x, generator(seed))
    for before, after in zip(x, out, strict=True):
        assert torch.equal(after, before) or torch.equal(after, before.flip(-1))


def test_half_of_the_images_are_mirrored():
    x = images(2_000, (1, 2, 2))
    changed = (augment.flip(x, generator()) - x).abs().amax(dim=(1, 2, 3)) > 0
    assert 900 < int(changed.sum()) < 1_100


@examples
@given(seed=seeds, m=st.integers(0, 5))
def test_shift_moves_and_mirrors_the_border(seed, m):
    x = images(12)
    out = augment.shift(x, m, generator(seed))
    for before, after in zip(x, out, strict=True):
        candidates = [moved_by_hand(before, dy, dx, m) for dy in range(-m, m + 1) for dx in range(-m, m + 1)]
        assert any(torch.equal(after, candidate) for candidate in candidates)


@examples
@given(seed=seeds)
def test_shift_is_the_loop_over_images(seed):
    x = images(9)
    g = generator(seed)
    down = torch.randint(-2, 3, (9,), generator=g)
    right = torch.randint(-2, 3, (9,), generator=g)
    loop = torch.stack([moved_by_hand(x[i], int(down[i]), int(right[i]), 2) for i in range(9)])
    assert_close(augment.shift(x, 2, generator(seed)), loop)


def test_every_offset_is_drawn_equally_often():
    x = images(1, (1, 9, 9)).expand(5_000, -1, -1, -1)
    centres = augment.shift(x, 2, generator())[:, 0, 4, 4].long()
    counts = torch.bincount(centres)
    counts = counts[counts > 0]
    assert len(counts) == 25
    assert 140 < int(counts.min()) <= int(counts.max()) < 260


def test_noise_has_the_asked_spread():
    x = torch.full((100, 3, 8, 8), 7.0)
    added = augment.noise(x, 0.15, generator()) - x
    assert abs(float(added.mean())) < 0.005
    assert abs(float(added.std()) - 0.15) < 0.005


@examples
@given(seed=seeds, size=st.integers(0, 12))
def test_cutout_is_the_loop_over_images(seed, size):
    x = images(9)
    g = generator(seed)
    rows = torch.randint(0, 6, (9,), generator=g)
    columns = torch.randint(0, 8, (9,), generator=g)
    loop = x.clone()
    for i in range(9):
        for r in range(6):
            for c in range(8):
                top, left = int(rows[i]) - size // 2, int(columns[i]) - size // 2
                if top <= r < top + size and left <= c < left + size:
                    loop[i, :, r, c] = 0
    assert_close(augment.cutout(x, size, generator(seed)), loop)


def test_a_box_in_the_middle_is_a_whole_square():
    holes = (augment.cutout(images(500, (3, 16, 16)), 4, generator()) == 0).sum(dim=(1, 2, 3)) // 3
    assert int(holes.max()) == 16
    assert int(holes.min()) >= 4  # in a corner, a quarter of it is left


def test_augment_is_its_parts_in_order():
    x, g = images(20), generator(3)
    by_hand = augment.noise(augment.shift(augment.flip(x, g), 2, g), 0.15, g)
    assert_close(Augment(flip=True, shift=2, noise=0.15)(x, generator(3)), by_hand)


def test_what_is_off_draws_nothing():
    x, g = images(20), generator(3)
    assert Augment(flip=False, shift=0, noise=0.0)(x, g) is x
    assert torch.equal(g.get_state(), generator(3).get_state())
    assert_close(Augment(flip=False, shift=2, noise=0.0)(x, g), augment.shift(x, 2, generator(3)))


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match=r"between 0 and 5 for images of 6 x 8\. Got 6"):
        augment.shift(images(), 6, generator())
    with pytest.raises(ValueError, match=r"at least 0\. Got -1"):
        augment.cutout(images(), -1, generator())
    with pytest.raises(ValueError, match=r"at least 0.*shift=-2"):
        Augment(flip=True, shift=-2, noise=0.1)
    with pytest.raises(ValueError, match=r"\[B, C, H, W\], float.*uint8"):
        augment.flip(images().to(torch.uint8), generator())


def test_a_crop_is_a_part_of_the_image_at_its_size():
    """A ramp stays a ramp: its slope is the side of the square, its values stay within those of the image."""
    side = 16
    ramp = torch.linspace(-1 + 1 / side, 1 - 1 / side, side).expand(200, 1, side, side)
    changed = crop(ramp, 0.25, torch.Generator().manual_seed(0))
    slopes = (changed[:, 0, 0, -2] - changed[:, 0, 0, 1]) / (ramp[0, 0, 0, -2] - ramp[0, 0, 0, 1])
    assert 0.5 - 1e-4 <= float(slopes.min()) < 0.55
    assert 0.95 < float(slopes.max()) <= 1 + 1e-4
    torch.testing.assert_close(slopes.square().mean(), torch.tensor(0.625), atol=0.05, rtol=0)
    centres = changed.mean((1, 2, 3))
    assert bool((centres.abs() <= 1 - slopes + 1e-4).all())
    assert float(centres.std()) > 0.05
    assert float(changed.abs().max()) <= 1


def test_the_whole_image_is_a_crop_of_it():
    x = torch.randn(3, 2, 7, 7)
    torch.testing.assert_close(crop(x, 1.0, torch.Generator().manual_seed(0)), x)
    with pytest.raises(ValueError, match=r"between 0 and 1. Got 0"):
        crop(x, 0, torch.Generator())
