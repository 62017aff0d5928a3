"""Digits: all of scikit-learn's, with a test part that never changes."""

from lab.data.dataset_checks import check_held_out, rows
from sklearn.datasets import load_digits

from arml.lab.data.digits import load


def test_the_test_part_is_balanced_and_always_the_same():
    check_held_out(load(), load(), side=8, held_out=36)


def test_digits_are_all_of_scikit_learns():
    x, y = load_digits(return_X_y=True)
    pixels = [bytes([label]) + bytes(round(v * 255 / 16) for v in image) for image, label in zip(x, y, strict=True)]
    assert rows(load().train, load().test) == sorted(pixels)
