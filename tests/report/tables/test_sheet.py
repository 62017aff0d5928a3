"""Cells of tables."""

from arml.report.data.summary import Summary
from arml.report.tables.sheet import difference


def test_differences_are_marked_only_beyond_the_interval():
    assert difference(Summary(1.0, 0.5, 3)).text == "+1.00 ± 0.50*"
    assert difference(Summary(-1.0, 1.5, 3)).text == "-1.00 ± 1.50"
    assert difference(Summary(-1.0, float("inf"), 1)).text == "-1.00"
    assert difference(None).text == ""
