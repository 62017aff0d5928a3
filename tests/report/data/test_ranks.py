"""Friedman's and Nemenyi's tests, against the example that Demšar worked out by hand."""

import math

import pytest

from arml.report.data.ranks import nemenyi_difference, rank_methods

ACCURACY = {
    "C4.5": [0.763, 0.599, 0.954, 0.628, 0.882, 0.936, 0.661, 0.583, 0.775, 1.000, 0.940, 0.619, 0.972, 0.957],
    "C4.5+m": [0.768, 0.591, 0.971, 0.661, 0.888, 0.931, 0.668, 0.583, 0.838, 1.000, 0.962, 0.666, 0.981, 0.978],
    "C4.5+cf": [0.771, 0.590, 0.968, 0.654, 0.886, 0.916, 0.609, 0.563, 0.866, 1.000, 0.965, 0.614, 0.9751, 0.946],
    "C4.5+m+cf": [0.798, 0.569, 0.967, 0.657, 0.898, 0.931, 0.685, 0.625, 0.875, 1.000, 0.962, 0.669, 0.975, 0.970],
}
"""Table 6 of Demšar (2006): AUC on 14 data sets. One digit is added where its ranks say so."""


def test_the_example_of_the_paper():
    found = rank_methods({name: [1 - value for value in values] for name, values in ACCURACY.items()})
    assert found.num_sets == 14
    assert {name: round(rank, 3) for name, rank in found.mean_ranks.items()} == {
        "C4.5+m+cf": 1.964,
        "C4.5+m": 2.000,
        "C4.5+cf": 2.893,
        "C4.5": 3.143,
    }
    assert found.friedman == pytest.approx(3.69, abs=0.005)
    assert found.p_value < 0.05
    assert found.critical_difference == pytest.approx(1.25, abs=0.005)
    assert found.cliques() == [("C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5")]


@pytest.mark.parametrize(("methods", "q"), [(2, 1.960), (4, 2.569), (10, 3.164)])
def test_critical_values_are_those_of_the_paper(methods, q):
    assert nemenyi_difference(methods, 1, 0.05) / math.sqrt(methods * (methods + 1) / 6) == pytest.approx(q, abs=1e-3)


def test_ranks_by_hand():
    found = rank_methods({"a": [1.0, 1.0, 1.0], "b": [2.0, 2.0, 3.0], "c": [3.0, 2.0, 2.0]})
    assert dict(found.mean_ranks) == pytest.approx({"a": 1.0, "b": 2.5, "c": 2.5})
    chi_square = 12 * 3 / (3 * 4) * (1.0 + 2 * 2.5**2 - 3 * 16 / 4)
    assert found.friedman == pytest.approx(2 * chi_square / (3 * 2 - chi_square))


def test_a_method_that_always_wins_is_told_apart():
    errors = {"best": [1.0] * 30, "second": [2.0] * 30, "third": [3.0] * 30}
    found = rank_methods(errors)
    assert found.p_value < 1e-6
    assert found.cliques() == []


@pytest.mark.parametrize("errors", [{}, {"a": [1.0, 2.0]}, {"a": [1.0], "b": [2.0]}, {"a": [1.0, 2.0], "b": [2.0]}])
def test_too_little_is_refused(errors):
    with pytest.raises(ValueError, match="Ranks need two methods or more"):
        rank_methods(errors)
