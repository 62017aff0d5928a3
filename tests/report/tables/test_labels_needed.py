"""Curves over training and over labels, by hand."""

import math

import pytest
from report.made_records import ssl_runs, write

from arml.lab.run import Domains, Line, SemiSupervised
from arml.report.data.comparison import comparisons
from arml.report.data.curves import Curve, band, mean_over_training, of_seed, over_training, shown_tasks
from arml.report.data.records import collect
from arml.report.data.topics import middle_level, topics
from arml.report.tables.labels_needed import (
    Needed,
    geometric_mean,
    labels_sheet,
    needed,
    needed_by_seed,
    saving,
    saving_sentences,
)

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
    assert saving_sentences(topic, 15.0) == [
        "S4L + ARML: no seed reaches an error of 15.00 % both with it and with uniform weights, so no share can be "
        "given."
    ]
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


@pytest.mark.parametrize(("level", "whom"), [(45.0, "both"), (35.0, "it")])
def test_an_error_that_the_fewest_labels_reach_is_not_called_unreached(topic, level, whom):
    assert saving_sentences(topic, level) == [
        f"S4L + ARML: where it and uniform weights reach an error of {level:.2f} % (3 of 3 seeds), the fewest labels "
        f"tried are already enough for {whom}, so no share can be given."
    ]


def test_a_bound_of_one_seed_is_not_said_of_all(tmp_path):
    """Seed 1 does not reach 30 % with either; on seed 0 equal weights are there at once."""
    for seed, arml, uniform in ((0, (40.0, 20.0), (25.0, 20.0)), (1, (50.0, 40.0), (50.0, 40.0))):
        for labels, ours, theirs in zip((10, 100), arml, uniform, strict=True):
            write(tmp_path, SemiSupervised(method="arml", seed=seed, labels=labels), ours)
            write(tmp_path, SemiSupervised(method="uniform", seed=seed, labels=labels), theirs)
    (found,) = topics(compared(tmp_path))
    (sentence,) = saving_sentences(found, 30.0)
    assert "(1 of 2 seeds), the fewest labels tried are already enough for uniform weights, so" in sentence


def test_without_uniform_there_is_no_share(tmp_path):
    for labels in (10, 100):
        write(tmp_path, SemiSupervised(labels=labels), 1000 / labels)
    (found,) = topics(compared(tmp_path))
    assert "no seed was run with it and with uniform weights" in saving_sentences(found, 50.0)[0]


def shots(path, learner, method, errors):
    for count, error in errors.items():
        write(path, Domains(learner=learner, method=method, shots=count), error)


def test_all_labels_are_named_and_have_no_part_in_the_level(tmp_path):
    shots(tmp_path, "jt", "uniform", {0: 90.0, 1: 60.0, 5: 40.0, "all": 2.0})
    (found,) = topics(compared(tmp_path))
    assert middle_level(found) == 50.0
    sheet = labels_sheet(found, 50.0)
    assert sheet.notes[-1] == "labels tried: 0, 1, 5, all; 0 and all left out: no place on a logarithmic axis"
    assert sheet.rows[0][1].text == f"{5**0.5:.3g}"


def test_where_nothing_is_on_the_axis_no_number_is_made_up(tmp_path):
    shots(tmp_path, "jt", "uniform", {0: 90.0, "all": 10.0})
    (found,) = topics(compared(tmp_path))
    assert middle_level(found) == 50.0
    assert [cell.text for cell in labels_sheet(found, 50.0).rows[0][1:]] == ["one number of labels only", "", "0 of 0"]


def test_lines_that_use_no_label_need_none(tmp_path):
    """Errors of sources alone differ by chance; neither the level nor a share is taken from them."""
    for learner in ("baseline", "jigen", "dsam", "shape_bias"):
        shots(tmp_path, learner, "uniform", {1: 80.0, 5: 10.0})
    shots(tmp_path, "baseline", "arml", {1: 60.0, 5: 40.0})
    shots(tmp_path, "jt", "uniform", {1: 60.0, 5: 40.0})
    (found,) = topics(compared(tmp_path))
    assert middle_level(found) == 50.0
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in labels_sheet(found, 50.0).rows}
    no_label = ["uses no label of the target", "", ""]
    assert rows.pop("Sources only (Baseline) + ARML") == ["2.24", "", "1 of 1"]
    assert rows.pop("Joint training (JT), uniform weights") == ["2.24", "", "1 of 1"]
    assert list(rows.values()) == [no_label] * 4
    assert saving_sentences(found, 50.0) == [
        "Sources only (Baseline) + ARML: with uniform weights it uses no label of the target, so no share can be given."
    ]
