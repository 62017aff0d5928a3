"""Final weights at different numbers of labels."""

import pytest
from report.made_records import scarce_runs, write
from report.made_reports import compare

from arml.lab.run_kinds import Domains
from arml.report.tables.scarcity_sheets import scarcity_sheets


@pytest.mark.parametrize(
    ("few", "many", "expected"),
    [
        ((2.0, 1.0, 0.0), (1.5, 1.0, 0.5), 1.0),
        ((2.0, 1.0, 0.0), (0.0, 1.0, 2.0), -1.0),
        ((2.0, 1.0, 0.0), (1, 1, 1), None),
    ],
)
def test_the_note_gives_the_agreement_of_weights(tmp_path, few, many, expected):
    scarce_runs(tmp_path, few, many)
    (sheet,) = scarcity_sheets(compare(tmp_path))
    assert sheet.headings == ("auxiliary task", "1 shot per class", "100 shots per class")
    assert any("Pearson" in note for note in sheet.notes)
    assert sheet.notes[0].startswith(
        "Agreement of weights between 1 shot per class, 100 shots per class: "
        + ("undefined" if expected is None else f"{expected:.2f}")
    )


@pytest.mark.parametrize(
    ("counts", "levels"),
    [
        ((1, 2, 3, 100, "all"), ("1 shot per class", "100 shots per class", "all labels")),
        ((1, 2, 3, 100), ("1 shot per class", "3 shots per class", "100 shots per class")),
        ((5, 100, "all"), ("5 shots per class", "100 shots per class", "all labels")),
    ],
)
def test_three_of_many_levels_are_listed_and_compared(tmp_path, counts, levels):
    """Weights fall at the levels in the table and rise elsewhere: only those in the table are compared."""
    for count in counts:
        for seed in range(2):
            falls = 1 if count != 2 else -1
            weights = {"a": 1 + falls * (0.5 + seed / 10), "b": 1.0, "c": 1 - falls * (0.5 + seed / 10)}
            write(tmp_path, Domains(shots=count, seed=seed), 10.0, weights=weights)
    (sheet,) = scarcity_sheets(compare(tmp_path))
    assert sheet.headings[1:] == levels
    assert sheet.notes[0] == f"Agreement of weights between {', '.join(levels)}: 1.00 ± 0.00, n = 2."


def test_two_tasks_have_no_number(tmp_path):
    for count, weight in ((1, 1.5), (5, 1.1)):
        for seed in range(2):
            write(tmp_path, Domains(shots=count, seed=seed), 10.0, weights={"a": weight, "b": 2 - weight})
    members = compare(tmp_path)
    (sheet,) = scarcity_sheets(members)
    assert sheet.notes[0].endswith(": no number; with fewer than 3 tasks correlation can only be 1, -1 or undefined.")
