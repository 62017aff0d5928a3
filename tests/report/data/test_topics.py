"""Comparisons at several numbers of labels."""

import pytest
from report.made_records import ssl_runs
from report.made_reports import compare

from arml.report.data.topics import middle_level, topics


def test_one_number_of_labels_makes_no_curve(tmp_path):
    ssl_runs(tmp_path)
    assert topics(compare(tmp_path)) == []


def test_the_middle_level_lies_between_the_best_and_the_worst_mean_with_equal_weights(topic):
    """Means with equal weights: 40.1 at 10 labels, 20.1 at 1000."""
    assert middle_level(topic) == pytest.approx(30.1)
