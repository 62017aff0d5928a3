"""Preprocessing against its obvious twin in numpy."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from arml.lab.data import GcnZca, Scale, preprocess


def images(count: int, seed: int = 0, shape: tuple[int, int, int] = (3, 4, 4)) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    base = torch.randint(0, 64, (count, *shape), generator=generator)
    return (3 * base + base.roll(1, -1)).to(torch.uint8)  # neighbours are alike, as in photographs


def gcn_by_hand(x: torch.Tensor) -> np.ndarray:
    rows = []
    for image in x.numpy().astype(np.float64):
        centred = image - image.mean()
        rows.append(55 * centred.ravel() / np.sqrt((centred**2).sum()))
    return np.array(rows)


def zca_by_hand(train: np.ndarray, x: np.ndarray) -> np.ndarray:
    u, s, _ = np.linalg.svd(np.cov(train, rowvar=False) + 0.1 * np.eye(train.shape[1]))
    return (x - train.mean(axis=0)) @ (u @ np.diag(1 / np.sqrt(s + 1e-10)) @ u.T)


def test_scale_takes_pixels_to_minus_one_and_one():
    x = torch.arange(256, dtype=torch.uint8).reshape(4, 1, 8, 8)
    out = Scale()(x)
    assert out.dtype == torch.float32
    assert out.shape == x.shape
    assert_close(out, x / 255 * 2 - 1)
    assert (float(out.min()), float(out.max())) == (-1, 1)


@pytest.mark.parametrize("chunk", [7, 2_000])
def test_whitening_is_the_formula(monkeypatch, chunk):
    monkeypatch.setattr(preprocess, "CHUNK", chunk)
    train, x = images(60), images(5, seed=1)
    out = GcnZca.fit(train)(x)
    assert out.dtype == torch.float32
    assert out.shape == x.shape
    expected = zca_by_hand(gcn_by_hand(train), gcn_by_hand(x))
    assert_close(out.flatten(1).double(), torch.from_numpy(expected), rtol=1e-4, atol=1e-4)


def test_whitened_images_have_the_covariance_the_formula_says():
    train = images(400)
    white = GcnZca.fit(train)(train).flatten(1).double()
    s, u = torch.linalg.eigh(torch.from_numpy(np.cov(gcn_by_hand(train), rowvar=False)))
    assert_close(torch.cov(white.T), u @ torch.diag(s / (s + 0.1)) @ u.T, rtol=1e-3, atol=1e-3)
    # One direction is lost with every image's mean; all others vary with nearly 1.
    spread = torch.linalg.eigvalsh(torch.cov(white.T))
    assert float(spread[0].abs()) < 1e-3
    assert bool((spread[1:] > 0.95).all())
    assert bool((spread[1:] < 1).all())


def test_contrast_is_the_same_for_every_image():
    x = preprocess.normalise_contrast(images(5))
    assert_close(x.flatten(1).norm(dim=1), torch.full((5,), 55.0))
    assert_close(x.flatten(1).mean(1), torch.zeros(5), rtol=0, atol=1e-5)


def test_an_image_of_one_colour_stays_finite():
    x = images(20)
    x[3] = 200
    assert_close(preprocess.normalise_contrast(x)[3], torch.zeros(3, 4, 4))
    assert bool(torch.isfinite(GcnZca.fit(x)(x)).all())


def test_an_image_does_not_depend_on_its_batch():
    whiten = GcnZca.fit(images(40))
    x = images(6, seed=2)
    assert_close(whiten(x), torch.cat([whiten(one[None]) for one in x]), rtol=1e-4, atol=1e-4)


def test_a_kept_fit_is_used_for_the_same_images_only(tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    first = GcnZca.fit(images(30), cache)
    other = GcnZca.fit(images(30, seed=1), cache)
    assert len(list(cache.iterdir())) == 2
    monkeypatch.setattr(preprocess, "_fit", None)  # fitting again would fail
    assert_close(GcnZca.fit(images(30), cache).matrix, first.matrix)
    assert_close(GcnZca.fit(images(30, seed=1), cache).mean, other.mean)


@pytest.mark.parametrize("share", [0, 0.5])
def test_a_damaged_kept_fit_is_made_again(tmp_path, share):
    first = GcnZca.fit(images(30), tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    assert_close(GcnZca.fit(images(30), tmp_path).matrix, first.matrix)
    assert_close(torch.load(path, weights_only=True)[1], first.matrix)


def test_what_is_no_image_is_refused():
    with pytest.raises(ValueError, match=r"Expected images of shape .*uint8.*float32"):
        Scale()(images(2).float())
    with pytest.raises(ValueError, match=r"Got shape \(3, 4, 4\)"):
        GcnZca.fit(images(2)[0])
    with pytest.raises(ValueError, match=r"at least 2 images\. Got 1"):
        GcnZca.fit(images(1))
    with pytest.raises(ValueError, match=r"48 numbers.*\(3, 5, 5\)"):
        GcnZca.fit(images(4))(images(4, shape=(3, 5, 5)))
