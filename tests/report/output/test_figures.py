"""What figures in files and charts on the page have in common."""

import pytest
from report.made_records import write
from report.made_reports import make_charts

from arml.lab.run_kinds import MultiLabel, SemiSupervised
from arml.report.charts.chart import Dots
from arml.report.output.matplotlib_figures import draw_figure, save
from arml.report.output.plotly_figures import views


def test_names_with_signs_are_drawn_as_they_are(tmp_path):
    """Dollars would start a formula in matplotlib, Plotly would interpret tags."""
    name = "a$_{x$ <b>&_1"
    write(tmp_path, SemiSupervised(), 10.0, weights={name: 1.5})
    chart = make_charts(tmp_path)["weights-digits-50-labels"]
    save([chart], tmp_path)
    (trace,) = views(chart)["groups"][0]["views"][0]["traces"]
    assert trace["name"] == "a$_{x$ &lt;b&gt;&amp;_1"


def test_errors_of_lines_with_one_seed_have_no_interval(tmp_path):
    write(tmp_path, SemiSupervised(), 10.0)
    (chart,) = make_charts(tmp_path).values()
    assert isinstance(chart, Dots)
    means = views(chart)["groups"][0]["views"][0]["traces"][1]
    assert (means["x"], means["error_x"]["array"]) == ([10.0], [0.0])
    assert means["customdata"] == [["10.00", 1]]
    assert draw_figure(chart).axes


def outlines(chart):
    """The ends of a band, as matplotlib and as Plotly draw it."""
    (collection,) = draw_figure(chart).axes[0].collections
    (outline,) = (one for one in views(chart)["groups"][0]["views"][0]["traces"] if one["meta"].get("band"))
    return collection.get_paths()[0].vertices[:, 1].tolist(), outline["y"]


def test_percentages_stay_between_0_and_100(spread):
    chart = spread["labels-digits-domains"]
    for ends in outlines(chart):
        assert (min(ends), max(ends)) == (0, 100)
    assert draw_figure(chart).axes[0].get_ylim() == (0, 100)
    found = views(chart)
    assert found["layout"]["yaxis"]["autorangeoptions"] == {"clipmin": 0, "clipmax": 100}
    # The band is cut off; the number next to it is the whole interval.
    assert found["groups"][0]["views"][0]["traces"][1]["customdata"] == [571.8, 571.8]
    assert "interval over seeds, cut off at 0 and 100." in chart.alt


def test_intervals_of_errors_stay_between_0_and_100(spread):
    chart = spread["error-digits-domains-1-shot-per-class"]
    ax = draw_figure(chart).axes[0]
    assert ax.get_xlim() == (0, 100)
    assert ax.collections[0].get_segments()[0][:, 0].tolist() == [0, 100]
    found = views(chart)
    bar = found["groups"][0]["views"][0]["traces"][1]["error_x"]
    assert (bar["array"], bar["arrayminus"], bar["symmetric"]) == ([50.0], [50.0], False)
    assert found["layout"]["xaxis"]["autorangeoptions"] == {"clipmin": 0, "clipmax": 100}


@pytest.mark.parametrize(
    "key", ["weights-digits-domains-1-shot-per-class", "scarcity-digits-domains-joint-training-jt-arml"]
)
def test_weights_are_not_negative(spread, key):
    for ends in outlines(spread[key]):
        assert min(ends) == 0
        assert max(ends) > 10
    assert draw_figure(spread[key]).axes[0].get_ylim()[0] == 0
    assert views(spread[key])["layout"]["yaxis"]["autorangeoptions"] == {"clipmin": 0}


@pytest.mark.parametrize(("cosine", "limit"), [(True, 1), (False, 3)], ids=["cosine", "older records"])
def test_agreement_may_be_negative_and_has_an_axis_with_limits(tmp_path, cosine, limit):
    """One product of -150 among small ones must not flatten all curves; cosines cannot leave [-1, 1]."""
    for seed, agreement in enumerate((-1.0, 1.0)):
        found = {"agreement": 150 * agreement, "cosine": agreement if cosine else None}
        write(tmp_path, SemiSupervised(seed=seed), 10.0, weights={"a": 1.0}, **found)
    chart = make_charts(tmp_path)["agreement-digits-50-labels"]
    for ends in outlines(chart):
        assert (min(ends), max(ends)) == (-limit, limit)
    assert ("cosine" in chart.y_title) == cosine
    assert views(chart)["layout"]["yaxis"]["autorangeoptions"] == {"clipmin": -limit, "clipmax": limit}


def test_a_weight_that_explodes_does_not_flatten_the_others(tmp_path):
    for seed in range(2):
        write(tmp_path, SemiSupervised(seed=seed), 10.0, weights={"a": 519626.99, "b": 1.0})
    chart = make_charts(tmp_path)["weights-digits-50-labels"]
    assert chart.bounds.high == 20
    assert "519626" not in chart.alt


def test_errors_of_numbers_may_be_above_100(tmp_path):
    """They are 100 (1 - R²): a network may do worse than always predicting the mean."""
    for labels in (10, 100):
        for seed, error in enumerate((80.0, 140.0)):
            write(tmp_path, MultiLabel(labels=labels, seed=seed), error, measured={"test_rmse": 2.0})
    found = make_charts(tmp_path)
    assert draw_figure(found["error-yeast-class1-10-labels"]).axes[0].get_xlim()[1] > 400
    assert draw_figure(found["labels-yeast-class1"]).axes[0].get_ylim()[1] > 400
