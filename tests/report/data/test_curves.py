"""Curves over training, by hand."""

import math

from report.made_records import write
from report.made_reports import compare

from arml.lab.run import Line
from arml.lab.run_kinds import SemiSupervised
from arml.report.data.curves import Curve, band, choose_tasks, mean_over_training, seed_curve

ARML = Line("s4l", "arml")


def test_a_band_is_where_all_seeds_have_been_with_straight_lines_between():
    found = band([Curve([0, 10, 20], [0.0, 1.0, 2.0]), Curve([5, 15, 30], [2.0, 2.0, 2.0]), Curve([], [])])
    assert found.steps == [5, 10, 15, 20]
    assert [summary.mean for summary in found.summaries] == [1.25, 1.5, 1.75, 2.0]
    assert found.summaries[0].n == 2
    assert band([]).steps == []


def test_curves_of_runs(tmp_path):
    for seed, end in enumerate((1.5, 2.0)):
        write(tmp_path, SemiSupervised(seed=seed), 10.0, weights={"rotation": end}, agreement=0.25 * (seed + 1))
    (comparison,) = compare(tmp_path)
    runs = comparison.finished[ARML]
    assert seed_curve(runs[0], "weights", "rotation") == Curve([25, 50], [1.25, 1.5])
    weights = band([seed_curve(run, "weights", "rotation") for run in runs.values()])
    assert [summary.mean for summary in weights.summaries] == [1.375, 1.75]
    assert mean_over_training(runs, "agreement", "rotation") == {0: 0.25, 1: 0.5}
    assert seed_curve(runs[0], "weights", "another").steps == []


def test_values_that_are_not_finite_are_left_out_of_curves(tmp_path):
    write(tmp_path, SemiSupervised(), 10.0, weights={"rotation": 1.0}, agreement=math.nan)
    (comparison,) = compare(tmp_path)
    assert mean_over_training(comparison.finished[ARML], "agreement", "rotation") == {}


def test_of_many_tasks_the_largest_and_smallest_are_chosen():
    weights = {f"task {k}": float(k) for k in range(20)}
    assert choose_tasks(weights) == [f"task {k}" for k in (19, 18, 17, 16, 3, 2, 1, 0)]
