"""Rows of result tables, from hand-written records."""

import json

import pytest
from report.made_records import make_recorded

from arml.lab.run import Line, Subject
from arml.lab.run_kinds import MultiLabel, SemiSupervised
from arml.report.tables.results import result_sheet
from arml.report.tables.rows import as_json, best_line, tables

DIGITS = Subject("ssl", "digits", "", 50)
ARML, UNIFORM = Line("s4l", "arml"), Line("s4l", "uniform")


def rows_by_line(records, subject=DIGITS, failed=()):
    return {row.line: row for row in tables(records, failed)[subject]}


def both(uniform, arml):
    return [
        make_recorded(error, seed=seed, method=method)
        for method, errors in {"uniform": uniform, "arml": arml}.items()
        for seed, error in enumerate(errors)
    ]


def test_means_intervals_and_paired_differences():
    """t(0.975, 2) = 4.3027: s of (10, 12, 14) is 2, so the half width is 4.3027 * 2 / sqrt(3)."""
    rows = rows_by_line(both([10.0, 12.0, 14.0], [9.0, 11.0, 13.0]))
    assert rows[UNIFORM].metrics["error"].mean == 12
    assert rows[UNIFORM].metrics["error"].half_width == pytest.approx(4.30265 * 2 / 3**0.5, rel=1e-4)
    assert rows[UNIFORM].against is None
    assert rows[ARML].against.mean == -1
    assert rows[ARML].against.excludes_zero()


def test_the_grid_is_chosen_by_validation_seed_by_seed():
    records = [
        make_recorded(1.0, validation=9.0, method="grid-0", seed=0),
        make_recorded(7.0, validation=2.0, method="grid-1", seed=0),
        make_recorded(5.0, validation=1.0, method="grid-0", seed=1),
        make_recorded(3.0, validation=4.0, method="grid-1", seed=1),
    ]
    assert rows_by_line(records)[Line("s4l", "grid")].metrics["error"].mean == 6


@pytest.mark.parametrize("backwards", [False, True])
def test_a_tie_on_the_grid_does_not_depend_on_which_record_is_read_first(backwards):
    records = [
        make_recorded(error, validation=2.0, method=name, seed=0) for error, name in ((7.0, "grid-1"), (4.0, "grid-0"))
    ]
    assert rows_by_line(records[::-1] if backwards else records)[Line("s4l", "grid")].metrics["error"].mean == 4


def test_runs_without_a_result_are_counted_as_what_they_are():
    records = [*both([1.0, 2.0, 3.0], [4.0]), make_recorded(None, seed=1), make_recorded(None, seed=5)]
    row = rows_by_line(records, failed={SemiSupervised(seed=5)})[ARML]
    assert (row.metrics["error"].n, row.unfinished, row.failed, row.missing) == (1, 1, 1, 1)
    sheet = result_sheet(DIGITS, [row], paper=False)
    assert sheet.rows[0][-1].text == "1 (+1 unfinished, +1 failed, +1 missing)"
    nothing = result_sheet(DIGITS, tables([make_recorded(None)])[DIGITS], paper=False)
    assert nothing.rows[0][1].text == "no finished run"


def test_tables_are_separate():
    records = [make_recorded(2.0, labels=20), make_recorded(4.0, labels=100, dataset="mnist5k")]
    assert list(tables(records)) == [Subject("ssl", "digits", "", 20), Subject("ssl", "mnist5k", "", 100)]


def test_best_only_where_intervals_are_apart():
    near, apart = both([2.0, 4.0], [1.0, 3.0]), both([8.0, 8.1], [1.0, 1.1])
    assert best_line(tables(near)[DIGITS]) is None
    assert best_line(tables(apart)[DIGITS]) == ARML
    grid = [make_recorded(0.0, seed=seed, method="grid-1") for seed in range(2)]
    assert best_line(tables(apart + grid)[DIGITS]) == ARML
    # A third line with a higher mean, but an interval that reaches below that of the first.
    wide = [make_recorded(error, seed=seed, method="adaloss") for seed, error in enumerate([0.0, 30.0])]
    assert best_line(tables(apart + wide)[DIGITS]) is None


def test_weights_are_averaged():
    records = [make_recorded(1.0, seed=s, weights={"rotation": w, "exemplar": 2 - w}) for s, w in enumerate([0.5, 1.5])]
    assert {task: weight.mean for task, weight in rows_by_line(records)[ARML].weights.items()} == {
        "rotation": 1.0,
        "exemplar": 1.0,
    }


def test_the_table_as_json_can_be_read_by_other_programs():
    run = MultiLabel(labels=None)
    (row,) = json.loads(json.dumps(as_json(tables([make_recorded(3.0, run=run)])), allow_nan=False))
    assert row["subject"] == {"setting": "mlc", "dataset": "yeast", "main": "Class1", "labels": "all"}
    assert row["metrics"]["error"] == {"mean": 3.0, "half_width": None, "n": 1}
