"""Runs that a comparison should not mix."""

from report.made_records import make_recorded

from arml.report.data.comparison import comparisons, differing_settings


def test_runs_that_should_not_be_in_one_table_are_noticed():
    (comparison,) = comparisons([make_recorded(1.0, steps=200), make_recorded(2.0, steps=400, method="uniform")])
    assert differing_settings(comparison) == {"steps": ["200", "400"]}
    (same,) = comparisons([make_recorded(1.0), make_recorded(2.0, method="uniform", seed=3)])
    assert differing_settings(same) == {}
