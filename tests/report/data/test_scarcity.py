"""How much weights agree between numbers of labels."""

import pytest
from report.made_records import scarce_runs, write
from report.made_reports import compare

from arml.lab.run import Line
from arml.lab.run_kinds import Domains
from arml.report.data.scarcity import weight_agreement

JT = Line("jt", "arml")


@pytest.mark.parametrize(
    ("few", "many", "expected"),
    [
        ((2.0, 1.0, 0.0), (1.5, 1.0, 0.5), 1.0),
        ((2.0, 1.0, 0.0), (0.0, 1.0, 2.0), -1.0),
        ((2.0, 1.0, 0.0), (1, 1, 1), None),
    ],
)
def test_agreement_between_numbers_of_labels(tmp_path, few, many, expected):
    scarce_runs(tmp_path, few, many)
    found = weight_agreement(JT, compare(tmp_path))
    assert (found and found.mean) == (expected and pytest.approx(expected))


def test_two_tasks_have_no_correlation(tmp_path):
    for count, weight in ((1, 1.5), (5, 1.1)):
        for seed in range(2):
            write(tmp_path, Domains(shots=count, seed=seed), 10.0, weights={"a": weight, "b": 2 - weight})
    assert weight_agreement(JT, compare(tmp_path)) is None


def test_only_seeds_with_all_numbers_of_labels_are_compare(tmp_path):
    write(tmp_path, Domains(shots=1, seed=7), 10.0, weights={"a": 2.0, "b": 0.0, "c": 1.0})
    scarce_runs(tmp_path, (2.0, 1.0, 0.0), (1.5, 1.0, 0.5))
    assert weight_agreement(JT, compare(tmp_path)).n == 2
