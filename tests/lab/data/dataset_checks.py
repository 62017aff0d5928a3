"""What the tests of several data sets of images have in common."""

import torch
from torch.testing import assert_close

from arml.lab.data import Dataset, Images


def check_held_out(dataset: Dataset, again: Dataset, side: int, held_out: int) -> None:
    """Grey images of ``side`` pixels; the test part has ``held_out`` per class and is always the same."""
    assert dataset.train.x.shape[1:] == dataset.test.x.shape[1:] == (1, side, side)
    assert dataset.train.x.dtype == torch.uint8
    assert (int(dataset.train.x.min()), int(dataset.train.x.max())) == (0, 255)
    assert torch.bincount(dataset.test.y).tolist() == [held_out] * 10
    assert_close(again.test.x, dataset.test.x)
    assert_close(again.train.y, dataset.train.y)


def rows(*parts: Images) -> list[bytes]:
    """Label and pixels of every image, sorted."""
    return sorted(bytes([int(y)]) + x.numpy().tobytes() for part in parts for x, y in zip(*part, strict=True))


def check_photographs(dataset: Dataset) -> None:
    """Colour photographs of 32 x 32 pixels and ten classes."""
    for part in (dataset.train, dataset.test):
        assert part.x.shape == (len(part.y), 3, 32, 32)
        assert part.x.dtype == torch.uint8
        assert (int(part.x.min()), int(part.x.max())) == (0, 255)
        assert bool((torch.bincount(part.y, minlength=10) > 0).all())
        assert len(torch.bincount(part.y)) == 10
        # Photographs: neighbouring pixels are alike, which a wrong order of axes would destroy.
        x = part.x[:200].float()
        assert float((x[..., 1:] - x[..., :-1]).abs().mean()) < float(x.std()) / 2
        assert float((x[..., 1:, :] - x[..., :-1, :]).abs().mean()) < float(x.std()) / 2
