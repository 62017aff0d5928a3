"""Comparisons at several numbers of labels."""

from report.made_records import ssl_runs
from report.made_reports import compare

from arml.report.data.topics import topics


def test_one_number_of_labels_makes_no_curve(tmp_path):
    ssl_runs(tmp_path)
    assert topics(compare(tmp_path)) == []
