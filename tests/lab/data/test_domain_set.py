"""Domains: shots, divisions, and folders of folders of images."""

import pytest
import torch
from PIL import Image
from torch.testing import assert_close

from arml.lab.data import DataError
from arml.lab.data.domain_set import Domain, divide, draw_shots, exclude, load_folders


def domain(per_class=(6, 6, 6), train=None):
    y = torch.repeat_interleave(torch.tensor(per_class))
    y = y[torch.randperm(len(y), generator=torch.Generator().manual_seed(7))]
    every = torch.arange(len(y))
    train = every if train is None else train
    return Domain("photo", torch.zeros(len(y), 1, 2, 2, dtype=torch.uint8), y, train, every[:0], every)


@pytest.mark.parametrize("seed", range(5))
def test_shots_are_balanced_nested_and_training_images(seed):
    train = torch.arange(1, 18)
    photo = domain(train=train)
    fewer = torch.tensor([], dtype=torch.int64)
    for per_class in (1, 2, 4):
        chosen = draw_shots(photo, per_class, num_classes=3, seed=seed)
        assert torch.bincount(photo.y[chosen]).tolist() == [per_class] * 3
        assert chosen.tolist() == sorted(set(chosen.tolist()))
        assert set(fewer.tolist()) < set(chosen.tolist()) <= set(train.tolist())
        fewer = chosen


def test_the_seed_alone_decides_the_shots():
    drawn = {tuple(draw_shots(domain(), 2, 3, seed).tolist()) for seed in range(20)}
    assert len(drawn) > 15
    state = torch.get_rng_state()
    assert_close(draw_shots(domain(), 2, 3, seed=5), draw_shots(domain(), 2, 3, seed=5))
    assert_close(torch.get_rng_state(), state)


def test_a_class_with_too_few_training_images_is_named():
    with pytest.raises(ValueError, match=r"'photo' has 2 training images of class 1; 3 shots.*at most 2"):
        draw_shots(domain((6, 2, 6)), 3, num_classes=3, seed=0)
    with pytest.raises(ValueError, match=r"has 0 training images of class 3; 1 shots"):
        draw_shots(domain(), 1, num_classes=4, seed=0)
    with pytest.raises(ValueError, match=r"at least 1 shot per class. Got 0"):
        draw_shots(domain(), 0, num_classes=3, seed=0)


def test_shots_are_not_tested_on():
    photo = domain()
    chosen = draw_shots(photo, 2, num_classes=3, seed=1)
    tested = exclude(photo.test, chosen)
    assert sorted(tested.tolist() + chosen.tolist()) == photo.test.tolist()
    assert_close(exclude(torch.tensor([4, 5]), torch.tensor([0, 1])), torch.tensor([4, 5]))


def test_a_tenth_of_every_class_is_for_validation():
    y = domain((50, 20, 14, 4, 2, 1)).y
    train, validation = divide(y)
    assert torch.bincount(y[validation], minlength=6).tolist() == [5, 2, 1, 1, 1, 0]
    assert sorted(train.tolist() + validation.tolist()) == list(range(91))
    for part in (train, validation):
        assert part.tolist() == sorted(part.tolist())
    assert_close(divide(y).validation, validation)
    assert not torch.equal(divide(y, seed=1).validation, validation)


def test_a_class_without_images_does_no_harm():
    assert len(divide(torch.tensor([0] * 10 + [2] * 10)).validation) == 2


DOMAINS = ("clay", "photo")
CLASSES = ("ant", "bee", "cat")


def colour(domain_name, class_name, number):
    return DOMAINS.index(domain_name) * 100 + 50, CLASSES.index(class_name) * 80, number


def folders(root, count=10):
    """Images of one colour, which says what they are, and of different sizes."""
    for d in DOMAINS:
        for c in CLASSES:
            (root / d / c).mkdir(parents=True)
            for i in range(count):
                image = Image.new("RGB", (5 + i, 12 - i), colour(d, c, i))
                image.save(root / d / c / f"{i:02}.{'PNG' if i else 'bmp'}", "png" if i else "bmp")
    return root


def test_every_image_is_read_into_its_domain_and_class(tmp_path):
    root = folders(tmp_path / "insects")
    calls = []
    dataset = load_folders(root, tmp_path / "cache", size=4, progress=lambda done, total: calls.append((done, total)))
    assert (dataset.name, dataset.classes, tuple(dataset.domains)) == ("insects", CLASSES, DOMAINS)
    for name, part in dataset.domains.items():
        assert (part.name, part.x.dtype, part.y.dtype) == (name, torch.uint8, torch.int64)
        assert part.y.tolist() == [0] * 10 + [1] * 10 + [2] * 10
        expected = torch.tensor([colour(name, c, i) for c in CLASSES for i in range(10)], dtype=torch.uint8)
        assert_close(part.x, expected[:, :, None, None].expand(30, 3, 4, 4))
        assert part.test.tolist() == list(range(30))
        assert sorted(part.train.tolist() + part.validation.tolist()) == list(range(30))
        assert torch.bincount(part.y[part.validation]).tolist() == [1, 1, 1]
    assert calls[-1] == (60, 60)


def test_images_are_decoded_once_for_every_size(tmp_path):
    root = folders(tmp_path / "insects", count=2)
    calls = []
    for size in (4, 6, 4, 6):
        dataset = load_folders(root, tmp_path / "cache", size=size, progress=lambda *done: calls.append(done))
        assert dataset.domains["clay"].x.shape == (6, 3, size, size)
    assert len(calls) == 2


def test_hidden_files_and_files_beside_the_domains_are_not_there(tmp_path):
    root = folders(tmp_path / "insects", count=2)
    for path in (".DS_Store", "README.md", "clay/.DS_Store", "clay/ant/._00.bmp", ".git/config", "clay/.tmp/00.png"):
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text("no image")
    dataset = load_folders(root, tmp_path / "cache", size=4)
    assert {name: len(part.y) for name, part in dataset.domains.items()} == {"clay": 6, "photo": 6}


def empty(folder):
    for path in folder.iterdir():
        path.unlink()


WRONG = {
    "no image": (lambda r: (r / "photo/ant/notes.txt").write_text("hello"), r"photo.ant.notes\.txt: .*another file"),
    "text inside": (lambda r: (r / "photo/ant/00.png").write_text("hello"), r"photo.ant.00\.png: "),
    "beside classes": (lambda r: (r / "clay/00.png").write_text("hello"), r"clay.00\.png: .*found a file"),
    "too deep": (lambda r: (r / "clay/ant/small.png").mkdir(), r"clay.ant.small\.png: .*found a folder"),
    "another class": (lambda r: (r / "clay/ant").rename(r / "clay/dog"), r"clay has no ant; photo has no dog\."),
    "empty class": (lambda r: empty(r / "photo/cat"), r"insects: .*same classes.*found: photo has no cat\."),
    "nothing": (lambda r: [empty(r / d / c) for d in DOMAINS for c in CLASSES], "no images at all"),
    "one domain": (lambda r: (r / "clay").rename(r.parent / "clay"), r"two domains.*found 1: photo"),
    "no folder": (lambda r: r.rename(r.parent / "moved"), r"insects: .*two domains.*found 0\."),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_the_folders_is_said(tmp_path, case):
    root = folders(tmp_path / "insects", count=2)
    change, message = WRONG[case]
    change(root)
    with pytest.raises(DataError, match=message):
        load_folders(root, tmp_path / "cache", size=4)


def test_empty_folders_of_unused_classes_do_no_harm(tmp_path):
    root = folders(tmp_path / "insects", count=2)
    (root / "clay" / "zebra").mkdir()
    assert load_folders(root, tmp_path / "cache", size=4).classes == CLASSES
