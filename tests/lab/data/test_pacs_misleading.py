"""PACS with a misleading source, on tiny folders."""

import torch
from lab.data.test_pacs import images, lists

from arml.lab.data import pacs, pacs_misleading


def test_half_of_the_paintings_have_wrong_labels_and_none_is_in_both_halves(tmp_path):
    """Colours say what an image is: red 0 for paintings, green 30 times the class, blue the number of the image."""
    lists(tmp_path / "PACS" / "splits", images(tmp_path / "PACS"))
    dataset = pacs_misleading.load(tmp_path, tmp_path / "cache", size=4)
    assert dataset.classes == pacs.CLASSES
    assert list(dataset.domains) == ["photo", "cartoon", "art_painting", "misleading"]
    right, wrong = dataset.domains["art_painting"], dataset.domains["misleading"]
    assert (len(right.y), len(wrong.y)) == (14, 7), "the first and third of three, and the second"
    for domain, shift in ((right, 0), (wrong, 1), (dataset.domains["cartoon"], 0), (dataset.domains["photo"], 0)):
        is_class = (domain.x[:, 1, 0, 0].double() / 30).round().long()
        assert torch.equal(domain.y, (is_class + shift) % 7)
    assert set(right.x[:, 2, 0, 0].tolist()) == {0, 2}
    assert set(wrong.x[:, 2, 0, 0].tolist()) == {1}


def test_images_stay_training_or_validation_images(tmp_path):
    """The second image of every class is for validation, so all of the misleading half is."""
    lists(tmp_path / "PACS" / "splits", images(tmp_path / "PACS"))
    domains = pacs_misleading.load(tmp_path, tmp_path / "cache", size=4).domains
    right, wrong = domains["art_painting"], domains["misleading"]
    assert (len(right.train), len(right.validation)) == (14, 0)
    assert (len(wrong.train), len(wrong.validation)) == (0, 7)
    assert torch.equal(wrong.test, torch.arange(7))
