"""Data sets with several targets in `arml data list`, `check` and `fetch`."""

import pytest
from lab.data.original_formats import celeba_files

from arml.lab.data import DataError
from arml.lab.data.fetch import Status, check, fetch, status


def row(root, name: str) -> Status:
    return next(found for found in status(root) if found.name == name)


def test_yeast_is_embedded(tmp_path):
    expected = Status("yeast", "embedded", "river", 2417, 0)
    assert row(tmp_path, "yeast") == expected
    assert fetch("yeast", tmp_path) == expected
    assert check("yeast", tmp_path).splitlines() == [
        "yeast: can be read from river",
        "  all: 2417 genes with 103 features",
        "  targets: 14, yes in 1.4 % (Class14) to 75.1 % (Class12)",
    ]


@pytest.mark.parametrize("nested", [False, True])
def test_celeba_is_counted_without_opening_images(tmp_path, nested):
    folder = celeba_files(tmp_path / "celeba", rows=7, nested=nested)
    images = folder / "Img" / "img_align_celeba" if nested else folder / "img_align_celeba"
    (images / "000001.jpg").write_bytes(b"not opened")
    expected = Status("celeba", "present", str(folder), 3, 2)
    assert row(tmp_path, "celeba") == expected
    assert fetch("celeba", tmp_path) == expected
    assert check("celeba", tmp_path).splitlines() == [
        f"celeba: can be read from {folder}",
        "  train: 3 images",
        "  validation: 2 images",
        "  test: 2 images",
        # Image i of 7 has attribute k if i + k can be divided by 3: three images if k can, too, else two.
        "  targets: 40, yes in 28.6 % (Attribute_1) to 42.9 % (Attribute_9)",
        f"  images: all are in {images}; they are opened by the first run",
    ]


@pytest.mark.parametrize("nested", [False, True])
def test_celeba_that_cannot_be_read_is_damaged(tmp_path, nested):
    folder = celeba_files(tmp_path / "celeba", nested=nested)
    (folder / ("Eval" if nested else ".") / "list_eval_partition.txt").unlink()
    found = row(tmp_path, "celeba")
    assert found.state == "damaged"
    assert "list_eval_partition.txt: expected" in found.note
    with pytest.raises(DataError, match="list_eval_partition"):
        check("celeba", tmp_path)


def test_how_to_get_celeba_by_hand_is_said(tmp_path):
    assert row(tmp_path, "celeba").state == "missing"
    with pytest.raises(DataError) as caught:
        fetch("celeba", tmp_path)
    words = str(caught.value)
    assert "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html" in words
    assert "terms" in words
    for name in ("img_align_celeba/000001.jpg", "list_attr_celeba.txt", "list_eval_partition.txt"):
        assert f"\n  celeba/{name}" in words
    assert words.endswith(f"The data folder is {tmp_path}.")
    assert list(tmp_path.iterdir()) == []
