"""Curves over training and over labels, by hand."""

import math

import pytest
from report.made_records import ssl_runs, write

from arml.lab.run import Line, SemiSupervised
from arml.report.comparison import comparisons
from arml.report.curves import Curve, band, mean_over_training, of_seed, over_training, shown_tasks
from arml.report.labels import (
    Needed,
    geometric_mean,
    labels_sheet,
    needed,
    needed_by_seed,
    saving,
    saving_sentences,
)
from arml.report.records import collect
from arml.report.topics import middle_level, topics

ARML, UNIFORM = Line("s4l", "arml"), Line("s4l", "uniform")


def compared(path):
    return comparisons(collect([path]).recorded)


def test_a_band_is_where_all_seeds_have_been_with_straight_lines_between():
    found = band([Curve([0, 10, 20], [0.0, 1.0, 2.0]), Curve([5, 15, 30], [2.0, 2.0, 2.0]), Curve([], [])])
    assert found.steps == [5, 10, 15, 20]
    assert [summary.mean for summary in found.summaries] == [1.25, 1.5, 1.75, 2.0]
    assert found.summaries[0].n == 2
    assert band([]).steps == []


def test_curves_of_runs(tmp_path):
    for seed, end in enumerate((1.5, 2.0)):
        write(tmp_path, SemiSupervised(seed=seed), 10.0, weights={"rotation": end}, agreement=0.25 * (seed + 1))
    (comparison,) = compared(tmp_path)
    runs = comparison.finished[ARML]
    assert of_seed(runs[0], "weights", "rotation") == Curve([25, 50], [1.25, 1.5])
    (weights,) = over_training(runs, "weights", ["rotation"]).values()
    assert [summary.mean for summary in weights.summaries] == [1.375, 1.75]
    assert mean_over_training(runs, "agreement", "rotation") == {0: 0.25, 1: 0.5}
    assert of_seed(runs[0], "weights", "another").steps == []


def test_numbers_that_are_none_are_left_out_of_curves(tmp_path):
    write(tmp_path, SemiSupervised(), 10.0, weights={"rotation": 1.0}, agreement=math.nan)
    (comparison,) = compared(tmp_path)
    assert mean_over_training(comparison.finished[ARML], "agreement", "rotation") == {}


def test_of_many_tasks_the_ends_are_shown():
    weights = {f"task {k}": float(k) for k in range(20)}
    assert shown_tasks(weights) == [f"task {k}" for k in (19, 18, 17, 16, 3, 2, 1, 0)]


def test_labels_needed_are_found_on_a_logarithmic_axis():
    errors = {10: 40.0, 100: 20.0, 1000: 10.0}
    assert needed(errors, 20.0).labels == pytest.approx(100)
    assert needed(errors, 30.0).labels == pytest.approx(10**1.5)
    assert needed(errors, 40.0) == Needed(pytest.approx(10), at_most=True)
    assert needed(errors, 9.0) == Needed(None)
    # The first crossing counts, and 0 or all labels have no place on the axis.
    assert needed({0: 5.0, 10: 40.0, 100: 20.0, 1000: 30.0, math.inf: 1.0}, 30.0).labels == pytest.approx(10**1.5)
    assert needed({}, 1.0) == Needed(None)


def test_a_geometric_mean_and_its_interval():
    """Logarithms -1 and 1 (base e): mean 0, s = sqrt(2), t(0.975, 1) = 12.706: half width 12.706."""
    found = geometric_mean([math.exp(-1), math.exp(1)])
    assert found.mean == pytest.approx(1)
    assert found.high == pytest.approx(math.exp(12.7062), rel=1e-3)
    assert found.low == pytest.approx(math.exp(-12.7062), rel=1e-3)
    assert geometric_mean([]) is None


@pytest.fixture
def topic(tmp_path):
    """Uniform falls from 40 to 20 between 10 and 1000 labels; ARML is there with a tenth; seeds differ a little."""
    for seed in range(3):
        for labels, uniform, arml in ((10, 40, 30), (100, 30, 20), (1000, 20, 10)):
            noise = 0.1 * seed
            write(tmp_path, SemiSupervised(method="uniform", seed=seed, labels=labels), uniform + noise)
            write(tmp_path, SemiSupervised(method="arml", seed=seed, labels=labels), arml + noise * (1 + seed / 10))
    (found,) = topics(compared(tmp_path))
    return found


def test_the_saving_is_paired_seed_by_seed(topic):
    """A decade of labels is 10 points: log10 of the ratios is -1, -0.999, -0.996, with s = 0.00208 and t = 4.303."""
    assert middle_level(topic) == pytest.approx(30.1)
    assert needed_by_seed(topic, UNIFORM, 25.0)[0].labels == pytest.approx(10**2.5)
    assert needed_by_seed(topic, ARML, 25.0)[0].labels == pytest.approx(10**1.5)
    share = saving(topic, ARML, 25.0)
    assert share.n == 3
    assert share.mean == pytest.approx(0.1, rel=0.02)
    assert share.low < 0.1 < share.high < 0.11
    (sentence,) = saving_sentences(topic, 25.0)
    assert sentence.startswith("S4L + ARML needs 10 % (9.92 to 10.2) ")
    assert sentence.endswith("of the labels that uniform weights need for an error of 25.00 %, n = 3 seeds.")


def test_levels_that_are_not_reached_are_said_so(topic):
    sheet = labels_sheet(topic, 15.0)
    cells = {row[0].text: [cell.text for cell in row[1:]] for row in sheet.rows}
    assert cells["S4L, uniform weights"] == ["not reached", "", "0 of 3"]
    assert cells["S4L + ARML"][1:] == ["", "3 of 3"]
    assert "on no seed is it known" in saving_sentences(topic, 15.0)[0]
    assert "with the fewest labels tried already" in saving_sentences(topic, 1000.0)[0]
    assert labels_sheet(topic, 45.0).rows[0][1].text == "at most 10"
    assert any("geometric mean" in note for note in sheet.notes)


def test_one_number_of_labels_makes_no_curve(tmp_path):
    ssl_runs(tmp_path)
    assert topics(compared(tmp_path)) == []


def test_a_saving_that_is_not_established_is_called_so(tmp_path):
    for seed, shift in enumerate((-2.0, 0.0, 2.0)):
        for labels, error in ((10, 40.0), (100, 30.0), (1000, 20.0)):
            write(tmp_path, SemiSupervised(method="uniform", seed=seed, labels=labels), error)
            write(tmp_path, SemiSupervised(method="arml", seed=seed, labels=labels), error + shift)
    (found,) = topics(compared(tmp_path))
    assert "The interval includes 100 %: no saving is established." in saving_sentences(found, 30.0)[0]
