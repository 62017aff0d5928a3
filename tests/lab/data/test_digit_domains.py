"""Digits as domains: who shows what, and who says what."""

import pytest
import torch
from torch.testing import assert_close

from arml.lab.data import digits, mnist5k
from arml.lab.data.digit_domains import SOURCES, load_all_misleading, load_one_misleading, resize
from arml.lab.data.domain_set import draw_shots

MAKERS = [load_one_misleading, load_all_misleading]


@pytest.fixture(scope="module", params=MAKERS, ids=["one", "all"])
def dataset(request):
    return request.param()


@pytest.fixture(scope="module")
def mnist():
    data = mnist5k.load()
    return inner(torch.cat([data.train.x, data.test.x])), torch.cat([data.train.y, data.test.y])


def inner(x):
    """MNIST's digits without the margin of 4 pixels, at 16 x 16."""
    return resize(x[:, :, 4:24, 4:24], 16)


UNDO = {
    "mnist5k": lambda x: x,
    "inverted": lambda x: 255 - x,
    "turned": lambda x: x.rot90(-1, (2, 3)),
    "misleading": lambda x: x,
}
WRONG_BY = {"mnist5k": 3, "inverted": 7, "turned": 9, "misleading": 1}


def test_names_and_sizes(dataset):
    assert list(dataset.domains) == ["digits", "mnist5k", "inverted", "turned", "misleading"]
    assert dataset.classes == tuple("0123456789")
    for name, domain in dataset.domains.items():
        assert domain.x.shape[1:] == (1, 16, 16)
        assert (domain.name, domain.x.dtype, domain.y.dtype) == (name, torch.uint8, torch.int64)
        parts = torch.cat([domain.train, domain.validation, domain.test])
        assert sorted(parts.tolist()) == list(range(len(domain.y))), "three parts that do not overlap"


def test_the_target_is_digits_with_its_own_test_part(dataset):
    target, data = dataset.domains["digits"], digits.load()
    assert_close(target.x[target.test], resize(data.test.x, 16))
    assert_close(target.y[target.test], data.test.y)
    rest = torch.cat([target.train, target.validation]).sort().values
    assert_close(target.x[rest], resize(data.train.x, 16))
    assert_close(target.y[rest], data.train.y)
    assert torch.bincount(target.y[draw_shots(target, 5, 10, seed=0)]).tolist() == [5] * 10


def test_sources_are_all_of_mnist_each_image_once(dataset, mnist):
    x, y = mnist
    label_of = {image.numpy().tobytes(): int(label) for image, label in zip(x, y, strict=True)}
    assert len(label_of) == 5_000
    seen = []
    for name in SOURCES:
        source = dataset.domains[name]
        assert torch.bincount(source.y).tolist() == [125] * 10
        assert torch.bincount(source.y[source.train]).tolist() == [90] * 10
        keys = [image.numpy().tobytes() for image in UNDO[name](source.x)]
        seen += keys
        shift = WRONG_BY[name] if name == "misleading" or dataset.name == "digits-all-misleading" else 0
        assert source.y.tolist() == [(label_of[key] + shift) % 10 for key in keys]
    assert len(set(seen)) == 5_000


def test_no_two_misleading_sources_agree():
    shifts = [source.shift for source in SOURCES.values()]
    assert len({shift % 10 for shift in shifts} - {0}) == len(shifts)


def test_the_training_part_of_mnist_stays_one(dataset):
    test = {image.numpy().tobytes() for image in inner(mnist5k.load().test.x)}
    for name in SOURCES:
        source = dataset.domains[name]
        x = UNDO[name](source.x)
        assert all(image.numpy().tobytes() in test for image in x[source.test])
        assert not any(image.numpy().tobytes() in test for image in x[source.train])


def test_both_sets_show_the_same_images():
    one, every = (make() for make in MAKERS)
    for name, domain in one.domains.items():
        assert_close(domain.x, every.domains[name].x)
        agree = (domain.y == every.domains[name].y).float().mean()
        assert float(agree) == (1 if name in ("digits", "misleading") else 0)


def test_inverted_is_bright_and_turned_lies_down():
    domains = load_one_misleading().domains
    assert float(domains["inverted"].x.float().mean()) > 180 > 75 > float(domains["mnist5k"].x.float().mean())
    ones = {name: domains[name].x[domains[name].y == 1].float() for name in ("mnist5k", "turned")}
    height, width = (
        (lambda x: x.sum(3).gt(200).sum(2).float().mean()),
        (lambda x: x.sum(2).gt(200).sum(2).float().mean()),
    )
    assert height(ones["mnist5k"]) > width(ones["mnist5k"])
    assert width(ones["turned"]) > height(ones["turned"])


def test_resizing_by_hand():
    """Half the size: with weights 1 3 3 1, or 3 3 1 at the edge; double: three quarters of the nearer pixel."""
    x = torch.tensor([0, 0, 0, 112], dtype=torch.uint8).reshape(1, 1, 1, 4).expand(1, 1, 4, 4)
    assert resize(x, 2)[0, 0].tolist() == [[0, 48], [0, 48]]
    x = torch.tensor([[0, 103], [0, 103]], dtype=torch.uint8).reshape(1, 1, 2, 2)
    assert resize(x, 4)[0, 0, 0].tolist() == [0, 26, 77, 103], "25.75 and 77.25, rounded"
    assert resize(x, 2).tolist() == x.tolist()
