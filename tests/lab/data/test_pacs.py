"""PACS in the layouts that people have, with official lists and without."""

import os
import shutil
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch.testing import assert_close

from arml.lab.data import DataError, fetch, pacs

DATA = os.environ.get("ARML_DATA")
REAL = DATA is not None and pacs.folder(Path(DATA)).is_dir()
PER_CLASS = 3
LEFT_OUT = "n02103406_4068-1"
PARTS = ("train", "crossval", "test")


def images(folder):
    """Three images in every class, whose colour says what they are; the last sketch of a dog is the one left out."""
    for d, domain in enumerate(pacs.DOMAINS):
        for c, category in enumerate(pacs.CLASSES):
            (folder / domain / category).mkdir(parents=True)
            for i in range(PER_CLASS):
                name = LEFT_OUT if (domain, category, i) == ("sketch", "dog", 2) else f"pic_{i}"
                Image.new("RGB", (6, 6), (60 * d, 30 * c, i)).save(folder / domain / category / f"{name}.png")
    return folder


def lists(folder, images):
    """The second image of every class is for validation; rows are not in the order of names."""
    folder.mkdir(exist_ok=True)
    for domain in pacs.DOMAINS:
        for part, chosen in zip(PARTS, ([2, 0], [1], [1, 2, 0]), strict=True):
            rows = [
                f"{domain}/{category}/{sorted((images / domain / category).iterdir())[i].name} {number}\n"
                for number, category in enumerate(pacs.CLASSES, start=1)
                for i in chosen
            ]
            (folder / f"{domain}_{part}_kfold.txt").write_text("".join(rows))
    return folder


LAYOUTS = {
    "plain": ("PACS", "PACS/splits"),
    "plain, lists beside": ("PACS", "PACS"),
    "kfold": ("PACS/kfold", "PACS/kfold"),
    "kfold, lists above": ("PACS/kfold", "PACS"),
    "kfold, splits above": ("PACS/kfold", "PACS/splits"),
    "dassl": ("pacs/images", "pacs/splits"),
    "the folder itself": (".", "splits"),
    "the kfold folder alone": ("kfold", "kfold"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_domains(tmp_path, layout):
    where, where_lists = LAYOUTS[layout]
    folder = images(tmp_path / "data" / where)
    lists(tmp_path / "data" / where_lists, folder)
    assert pacs.folder(tmp_path / "data") == folder
    dataset = pacs.load(tmp_path / "data", tmp_path / "cache", size=4)
    assert (dataset.name, dataset.classes, tuple(dataset.domains)) == ("pacs", pacs.CLASSES, pacs.DOMAINS)
    for d, domain in enumerate(dataset.domains.values()):
        assert domain.y.tolist() == [c for c in range(7) for _ in range(3)]
        # "n0..." comes before "pic...", so the image with the number 2 is the first sketch of a dog
        numbers = [2, 0, 1, *[0, 1, 2] * 6] if domain.name == "sketch" else [0, 1, 2] * 7
        colours = [(60 * d, 30 * (i // 3), number) for i, number in enumerate(numbers)]
        assert domain.x[:, :, 0, 0].tolist() == [list(colour) for colour in colours]
        assert domain.x.shape == (21, 3, 4, 4)
        assert domain.validation.tolist() == [1, 4, 7, 10, 13, 16, 19]
        assert domain.train.tolist() == [i for i in range(21) if i % 3 != 1]
        assert domain.test.tolist() == list(range(21))


def test_without_lists_a_part_of_every_class_is_for_validation(tmp_path):
    images(tmp_path / "PACS")
    (tmp_path / "PACS" / "splits").mkdir()
    (tmp_path / "PACS" / "photo_train.txt").write_text("/home/me/photo/dog/pic_0.png 0\n")
    dataset = pacs.load(tmp_path, tmp_path / "cache")
    for domain in dataset.domains.values():
        assert domain.x.shape == (21, 3, 64, 64)
        assert torch.bincount(domain.y[domain.validation]).tolist() == [1] * 7
        assert sorted(domain.train.tolist() + domain.validation.tolist()) == domain.test.tolist() == list(range(21))


def official(tmp_path):
    return lists(tmp_path / "PACS" / "splits", images(tmp_path / "PACS"))


def drop(path, text):
    path.write_text("".join(row for row in path.read_text().splitlines(keepends=True) if text not in row))


LESS = {
    "on disk": lambda splits: (splits.parent / "sketch" / "dog" / f"{LEFT_OUT}.png").unlink(),
    "in all lists": lambda splits: [drop(path, LEFT_OUT) for path in splits.glob("sketch_*")],
    "in the test list": lambda splits: drop(splits / "sketch_test_kfold.txt", LEFT_OUT),
    "in the training list": lambda splits: drop(splits / "sketch_train_kfold.txt", LEFT_OUT),
}


@pytest.mark.parametrize("where", LESS)
def test_one_sketch_may_be_missing(tmp_path, where):
    splits = official(tmp_path)
    LESS[where](splits)
    dataset = pacs.load(tmp_path, tmp_path / "cache", size=4)
    expected = 21 if where == "in the test list" else 20
    # The image left out is in the training list, so that only this part gets smaller.
    sketch = dataset.domains["sketch"]
    assert (len(sketch.train), len(sketch.validation), len(sketch.test)) == (expected - 7, 7, expected)
    assert len(dataset.domains["photo"].y) == 21
    assert torch.bincount(sketch.y).tolist() == [expected - 18, 3, 3, 3, 3, 3, 3]


def edit(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def in_list(name, old, new):
    return lambda splits: edit(splits / name, old, new)


PHOTO = "photo_train_kfold.txt"
WRONG = {
    "label": (in_list(PHOTO, "horse/pic_0.png 5", "horse/pic_0.png 4"), PHOTO, "label 5 for horse in line 10"),
    "zero based": (in_list(PHOTO, "dog/pic_2.png 1", "dog/pic_2.png 0"), PHOTO, "label 1 for dog in line 1"),
    "no label": (in_list(PHOTO, "dog/pic_0.png 1", "dog/pic_0.png"), PHOTO, "photo/<class>/<image> <label> in line 2"),
    "class": (in_list(PHOTO, "photo/dog/pic_0.png 1", "photo/cat/pic_0.png 1"), PHOTO, "line 2, found 'photo/cat"),
    "domain": (in_list(PHOTO, "photo/dog/pic_0.png", "sketch/dog/pic_0.png"), PHOTO, "line 2, found 'sketch/dog"),
    "blank": (in_list(PHOTO, "photo/dog/pic_0.png 1\n", "\n"), PHOTO, "line 2, found ''"),
    "not there": (in_list(PHOTO, "dog/pic_0", "dog/pic_9"), PHOTO, r"there in line 2, found photo/dog/pic_9\.png"),
    "twice": (in_list(PHOTO, "dog/pic_0", "dog/pic_2"), PHOTO, r"line 2, found photo/dog/pic_2\.png, as in line 1"),
    "both": (
        in_list("photo_crossval_kfold.txt", "dog/pic_1", "dog/pic_0"),
        "photo_crossval_kfold.txt",
        r"no image of photo_train_kfold\.txt in line 1, found photo/dog/pic_0\.png",
    ),
    "test too long": (
        in_list(PHOTO, "photo/dog/pic_0.png 1\n", ""),
        "photo_test_kfold.txt",
        r"photo_train_kfold\.txt or photo_crossval_kfold\.txt in line 3, found photo/dog/pic_0\.png",
    ),
    "test too short": (
        in_list("photo_test_kfold.txt", "photo/dog/pic_0.png 1\n", ""),
        PHOTO,
        r"an image of photo_test_kfold\.txt in line 2, found photo/dog/pic_0\.png",
    ),
    "test without a validation image": (
        in_list("photo_test_kfold.txt", "photo/dog/pic_1.png 1\n", ""),
        "photo_crossval_kfold.txt",
        r"an image of photo_test_kfold\.txt in line 1, found photo/dog/pic_1\.png",
    ),
    "bytes": (lambda splits: (splits / PHOTO).write_bytes(b"\xff\xfe\x00"), PHOTO, "damaged or different"),
    "a list is missing": (lambda splits: (splits / PHOTO).unlink(), PHOTO, "found no such file"),
    "not listed": (
        lambda splits: shutil.copy(splits.parent / "photo/dog/pic_0.png", splits.parent / "photo/dog/pic_7.png"),
        "pic_7.png",
        "an image that the lists in .*splits name, found one that they do not",
    ),
    "a domain is missing": (
        lambda splits: (splits.parent / "cartoon").rename(splits.parent / "comics"),
        "cartoon",
        "a folder of images, found no such folder",
    ),
    "other classes": (
        lambda splits: [(splits.parent / d / "dog").rename(splits.parent / d / "cat") for d in pacs.DOMAINS],
        "PACS",
        "the classes dog, elephant, .*found cat, elephant",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_hold_is_said_with_file_and_line(tmp_path, case):
    splits = official(tmp_path)
    change, file, message = WRONG[case]
    change(splits)
    with pytest.raises(DataError, match=rf"{file}: expected .*{message}.*arml data fetch pacs.*ARML_DATA"):
        pacs.load(tmp_path, tmp_path / "cache", size=4)


def test_nothing_there(tmp_path):
    with pytest.raises(DataError, match=r"PACS.art_painting: .*found no such folder"):
        pacs.load(tmp_path, tmp_path / "cache")


@pytest.mark.skipif(not REAL, reason="set ARML_DATA to a folder with PACS to read it")
def test_the_real_files_can_be_read(tmp_path):
    dataset = pacs.load(Path(DATA), tmp_path, size=32)
    again = pacs.load(Path(DATA), tmp_path, size=32)
    sizes = {d.name: (len(d.train), len(d.validation), len(d.test)) for d in dataset.domains.values()}
    assert sizes == {
        "art_painting": (1840, 208, 2048),
        "cartoon": (2107, 237, 2344),
        "photo": (1499, 171, 1670),
        "sketch": (3531, 398, 3929),
    }
    for name, domain in dataset.domains.items():
        assert_close(domain.x[::50], again.domains[name].x[::50])
        assert len(torch.bincount(domain.y[domain.validation])) == 7
    sketch, photo = (dataset.domains[name].x[::20].float() for name in ("sketch", "photo"))
    assert float(sketch.mean()) > 200 > float(photo.mean()), "sketches are black lines on white"
    assert_close(sketch[:, 0], sketch[:, 2])


def test_check_says_what_is_there_without_opening_images(tmp_path):
    made = images(tmp_path / "PACS")
    lists(tmp_path / "PACS" / "splits", made)
    for path in (tmp_path / "PACS" / "photo").rglob("*.png"):
        path.write_bytes(b"no image")
    assert "photo: " in fetch.check("pacs", tmp_path)
    with pytest.raises(DataError, match=r"(?s)PACS/<domain>/<class>/<image>.*arml data check pacs"):
        fetch.fetch("pacs", tmp_path / "nowhere")
