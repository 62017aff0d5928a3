"""Means, intervals and paired differences."""

from arml.report.data.summary import paired_difference, summarise


def test_only_common_seeds_are_paired():
    assert paired_difference({0: 1.0}, {1: 1.0}) is None
    assert paired_difference({0: 1.0, 1: 5.0}, {1: 3.0}).mean == 2


def test_one_seed_establishes_nothing():
    assert not summarise([3.0]).excludes_zero()
    assert str(summarise([3.0])) == "3.00"
