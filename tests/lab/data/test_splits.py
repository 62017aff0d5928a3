"""Laws of dividing training images."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from arml.lab.data.base import Images
from arml.lab.data.splits import PAPER_SIZES, hold_out, split, validation_size

examples = settings(max_examples=150, deadline=None)
seeds = st.integers(0, 10_000)


@st.composite
def cases(draw):
    """Labels in random order with enough of every class, and sizes that fit."""
    num_classes = draw(st.integers(1, 6))
    per_class = draw(st.integers(4, 12))
    y = torch.arange(num_classes).repeat(per_class)
    y = y[torch.randperm(len(y), generator=torch.Generator().manual_seed(draw(seeds)))]
    validation = draw(st.integers(0, per_class // 2))  # at worst all of one class
    labels = draw(st.integers(1, num_classes * (per_class - validation)))
    return y, num_classes, labels, validation


@examples
@given(case=cases(), seed=seeds, include=st.booleans())
def test_parts_are_disjoint_and_nothing_is_lost(case, seed, include):
    y, num_classes, labels, validation = case
    parts = split(y, num_classes, labels=labels, validation=validation, seed=seed, include_labelled=include)
    labelled, unlabelled, held = (set(part.tolist()) for part in parts)
    assert [len(part) for part in (labelled, held)] == [labels, validation]
    assert not held & (labelled | unlabelled)
    assert held | labelled | unlabelled == set(range(len(y)))
    assert labelled <= unlabelled if include else not labelled & unlabelled
    for part in parts:
        assert part.dtype == torch.int64
        assert part.tolist() == sorted(set(part.tolist()))


@examples
@given(case=cases(), seed=seeds)
def test_labels_are_balanced(case, seed):
    y, num_classes, labels, validation = case
    labelled = split(y, num_classes, labels=labels, validation=validation, seed=seed).labelled
    counts = torch.bincount(y[labelled], minlength=num_classes)
    assert int(counts.max() - counts.min()) <= 1


@examples
@given(case=cases(), seed=seeds)
def test_the_seed_alone_decides(case, seed):
    y, num_classes, labels, validation = case
    first = split(y, num_classes, labels=labels, validation=validation, seed=seed)
    torch.manual_seed(seed + 1)
    again = split(y.clone(), num_classes, labels=labels, validation=validation, seed=seed)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


@examples
@given(case=cases(), seed=seeds)
def test_the_same_validation_images_for_every_number_of_labels(case, seed):
    y, num_classes, labels, validation = case
    few = split(y, num_classes, labels=1, validation=validation, seed=seed)
    many = split(y, num_classes, labels=labels, validation=validation, seed=seed)
    assert torch.equal(few.validation, many.validation)
    assert torch.equal(few.unlabelled, many.unlabelled)


@examples
@given(case=cases(), seed=seeds)
def test_more_labels_add_to_fewer_if_both_come_out_even(case, seed):
    y, num_classes, labels, validation = case
    assume(labels >= 2 * num_classes)
    few = split(y, num_classes, labels=num_classes, validation=validation, seed=seed).labelled
    many = split(y, num_classes, labels=labels - labels % num_classes, validation=validation, seed=seed).labelled
    assert set(few.tolist()) <= set(many.tolist())


Y = torch.arange(10).repeat(100)


def test_another_seed_gives_another_division():
    parts = [split(Y, 10, labels=40, validation=100, seed=seed) for seed in range(5)]
    for name in ("labelled", "unlabelled", "validation"):
        assert len({tuple(getattr(part, name).tolist()) for part in parts}) == 5


def test_classes_that_get_one_more_change_with_the_seed():
    lucky = [torch.bincount(Y[split(Y, 10, labels=13, validation=0, seed=s).labelled]).tolist() for s in range(8)]
    assert all(sorted(counts) == [1] * 7 + [2] * 3 for counts in lucky)
    assert len({tuple(counts) for counts in lucky}) > 4


def test_fewer_labels_than_classes_leave_some_classes_out():
    labelled = split(Y, 10, labels=4, validation=0, seed=0).labelled
    assert len(set(Y[labelled].tolist())) == 4


def test_validation_images_are_not_balanced_on_purpose():
    counts = torch.bincount(Y[split(Y, 10, labels=10, validation=300, seed=0).validation])
    assert int(counts.max() - counts.min()) > 1


BAD = {
    "none labelled": ({"labels": 0, "validation": 10}, "`labels` should be at least 1 and at most 990.*Got 0"),
    "too many labels": ({"labels": 991, "validation": 10}, "at most 990.*Got 991"),
    "negative validation": ({"labels": 10, "validation": -1}, "0 to 999. Got -1"),
    "too much validation": ({"labels": 10, "validation": 1000}, "0 to 999. Got 1000"),
}


@pytest.mark.parametrize("case", BAD)
def test_sizes_that_do_not_fit_are_refused(case):
    sizes, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        split(Y, 10, seed=0, **sizes)


def test_a_class_with_too_few_images_is_named():
    y = torch.cat([Y, torch.tensor([10, 10])])
    with pytest.raises(ValueError, match="Class 10 has 2 images to choose from, 3 should be labelled"):
        split(y, 11, labels=33, validation=0, seed=0)


@pytest.mark.parametrize("y", [Y.float(), Y[None], Y[:0], Y - 1, Y + 1])
def test_labels_that_are_none_are_refused(y):
    with pytest.raises(ValueError, match=r"labels of shape|between 0 and 9"):
        split(y, 10, labels=10, validation=0, seed=0)


def test_the_papers_sizes():
    for name, paper in PAPER_SIZES.items():
        assert validation_size(name, paper.train) == paper.validation
    assert PAPER_SIZES["svhn"].train - PAPER_SIZES["svhn"].validation == 65_932
    assert validation_size("cifar10", 10_000) == 1_000
    assert validation_size("mnist5k", 4_000) == 400


def test_holding_out_keeps_order_and_loses_nothing():
    images = Images(torch.arange(40, dtype=torch.uint8).reshape(40, 1, 1, 1), torch.arange(40) % 4)
    train, test = hold_out(images, 4, share=0.2, seed=3)
    assert torch.bincount(test.y).tolist() == [2, 2, 2, 2]
    kept, held = train.x.flatten().tolist(), test.x.flatten().tolist()
    assert kept == sorted(kept)
    assert held == sorted(held)
    assert sorted(kept + held) == list(range(40))
