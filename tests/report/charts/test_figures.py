"""Figures as files and as data for the page."""

import json

import plotly.graph_objects as go
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image
from report.made_records import dg_runs, finished_chart, mlc_runs, ssl_runs, write

from arml.lab.run import Domains, MultiLabel, SemiSupervised
from arml.report.charts.chart import PALETTE, Dots, Heat, Lines
from arml.report.charts.one_subject import of_comparison
from arml.report.charts.over_subjects import of_all
from arml.report.data.comparison import comparisons
from arml.report.data.records import collect
from arml.report.output.matplotlib_figures import MARKERS, STYLES, drawn, save
from arml.report.output.plotly_figures import ALL_SEEDS, views


def charts_of(path):
    collected = collect([path])
    compared = comparisons(collected.recorded)
    charts = [chart for comparison in compared for chart in of_comparison(comparison)]
    return {chart.key: chart for chart in [*charts, *of_all(compared)]}


@pytest.fixture(scope="module")
def charts(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs")
    ssl_runs(path, labels=(50, 100))
    mlc_runs(path)
    dg_runs(path)
    return {**charts_of(path), "cost": finished_chart()}


def test_every_figure_of_the_report_is_there(charts):
    kinds = {key.split("-")[0] for key in charts}
    assert kinds == {"error", "weights", "agreement", "labels", "scarcity", "matrix", "cost"}
    assert all(chart.alt.endswith(".") for chart in charts.values())


def test_weights_have_a_band_and_every_seed(charts):
    chart = charts["weights-digits-50-labels"]
    assert isinstance(chart, Lines)
    assert [panel.title for panel in chart.panels] == ["S4L + ARML", "S4L + Gated ARML (ours)"]
    rotation, exemplar = chart.panels[0].series
    assert (rotation.x, rotation.y[-1]) == ([25, 50], pytest.approx(0.06))
    assert rotation.low[-1] < 0.06 < rotation.high[-1]
    assert exemplar.name == "exemplar"
    assert dict(chart.panels[0].by_seed)["seed 2"][0].y[-1] == pytest.approx(0.07)
    # Equal weights do not change; their tasks' agreement does.
    assert [panel.title for panel in charts["agreement-digits-50-labels"].panels][-1] == "S4L, uniform weights"


def test_shots_are_shown_against_accuracy_and_labels_against_error(charts):
    shots, labels = charts["labels-digits-digits"], charts["labels-digits"]
    assert (shots.y_title, shots.log_x, shots.level) == ("accuracy in %", False, None)
    alone = next(series for series in shots.panels[0].series if series.name == "Main task only")
    assert (alone.x, alone.y) == ([1, 5], [70.5, 74.5])  # errors 29.5 and 25.5
    assert alone.low[0] < 70.5 < alone.high[0]
    assert (labels.y_title, labels.log_x) == ("test error in %", True)
    assert labels.level == pytest.approx((18.5 + 13.5) / 2)


def test_scarcity_has_a_panel_for_few_and_for_many(charts):
    chart = charts["scarcity-digits-digits-joint-training-jt-arml"]
    assert [panel.title for panel in chart.panels] == ["1 shot a class", "5 shots a class"]


def test_the_matrix_has_a_gap_where_main_and_auxiliary_are_the_same(charts):
    chart = charts["matrix-yeast-50-labels-all-targets-arml"]
    assert isinstance(chart, Heat)
    assert chart.values[0][chart.columns.index("Class1")] is None
    assert chart.values[0][chart.columns.index("Class2")] == pytest.approx(2.005)


def test_curves_differ_in_more_than_colour(charts):
    """No two of twice as many curves as colours share colour, style and marker."""
    looks = {(PALETTE[i % 8], STYLES[(i + i // 8) % 4], MARKERS[i % 8]) for i in range(16)}
    assert len(looks) == 16
    figure = drawn(charts["weights-yeast-class1-50-labels"])
    curves = [line for line in figure.axes[0].lines if line.get_marker() != "None"]
    assert len({(line.get_color(), line.get_linestyle(), line.get_marker()) for line in curves}) == len(curves) == 8


def test_files_are_written(charts, tmp_path):
    keys = ["error-digits-50-labels", "weights-digits-50-labels", "matrix-yeast-50-labels-all-targets-arml", "cost"]
    paths = save([charts[key] for key in keys], tmp_path / "figures")
    assert [path.name for path in paths[:2]] == [f"{keys[0]}.png", f"{keys[0]}.svg"]
    for path in paths:
        if path.suffix == ".png":
            with Image.open(path) as image:
                assert image.width > 600
                assert len(image.convert("L").getcolors(256)) > 10
        else:
            assert "</svg>" in path.read_text()
            assert charts[path.stem].title in path.read_text()


def test_names_with_signs_are_drawn_as_they_are(tmp_path):
    """Dollars would start a formula in matplotlib, tags would act in Plotly."""
    name = "a$_{x$ <b>&_1"
    write(tmp_path, SemiSupervised(), 10.0, weights={name: 1.5})
    chart = charts_of(tmp_path)["weights-digits-50-labels"]
    save([chart], tmp_path)
    (trace,) = views(chart)["groups"][0]["views"][0]["traces"]
    assert trace["name"] == "a$_{x$ &lt;b&gt;&amp;_1"


def test_plotly_accepts_everything(charts):
    """Its own schema refuses keys and values that it does not know."""
    for chart in charts.values():
        found = json.loads(json.dumps(views(chart), allow_nan=False))
        for group in found["groups"]:
            for view in group["views"]:
                assert go.Figure(data=view["traces"], layout=found["layout"]).data


def test_a_view_for_every_method_and_seed(charts):
    found = views(charts["weights-digits-50-labels"])
    assert [group["name"] for group in found["groups"]] == ["S4L + ARML", "S4L + Gated ARML (ours)"]
    assert [view["name"] for view in found["groups"][0]["views"]] == [ALL_SEEDS, "seed 0", "seed 1", "seed 2"]
    outline, curve = found["groups"][0]["views"][0]["traces"][:2]
    assert outline["fill"] == "toself"
    assert curve["y"] == [0.53, 0.06]


def test_errors_of_lines_with_one_seed_have_no_interval(tmp_path):
    write(tmp_path, SemiSupervised(), 10.0)
    (chart,) = charts_of(tmp_path).values()
    assert isinstance(chart, Dots)
    means = views(chart)["groups"][0]["views"][0]["traces"][1]
    assert (means["x"], means["error_x"]["array"]) == ([10.0], [0.0])
    assert means["customdata"] == [["10.00", 1]]
    assert drawn(chart).axes


def test_there_are_no_half_shots(charts):
    ticks = drawn(charts["labels-digits-digits"]).axes[0].get_xticks()
    assert ticks.tolist() == [round(tick) for tick in ticks]


def outlines(chart):
    """What bands show: of matplotlib, and of Plotly."""
    (collection,) = drawn(chart).axes[0].collections
    (outline,) = (one for one in views(chart)["groups"][0]["views"][0]["traces"] if one["meta"].get("band"))
    return collection.get_paths()[0].vertices[:, 1].tolist(), outline["y"]


@pytest.fixture
def spread(tmp_path):
    """Errors 5 and 95 have the mean 50 and an interval of 50 ± 571.8, weights 0.1 and 1.9 that of 1 ± 11.4."""
    for count in (1, 5, "all"):
        for seed, (error, weight) in enumerate(((5.0, 0.1), (95.0, 1.9))):
            write(tmp_path, Domains(shots=count, seed=seed), error, weights={"a": weight})
    return charts_of(tmp_path)


def test_percentages_stay_between_0_and_100(spread):
    chart = spread["labels-digits-digits"]
    for ends in outlines(chart):
        assert (min(ends), max(ends)) == (0, 100)
    assert drawn(chart).axes[0].get_ylim() == (0, 100)
    found = views(chart)
    assert found["layout"]["yaxis"]["autorangeoptions"] == {"clipmin": 0, "clipmax": 100}
    # What is shown is cut off, what is said is the interval itself.
    assert found["groups"][0]["views"][0]["traces"][1]["customdata"] == [571.8, 571.8]
    assert "interval over seeds, cut off at 0 and 100." in chart.alt


def test_intervals_of_errors_stay_between_0_and_100(spread):
    chart = spread["error-digits-digits-1-shot-a-class"]
    ax = drawn(chart).axes[0]
    assert ax.get_xlim() == (0, 100)
    assert ax.collections[0].get_segments()[0][:, 0].tolist() == [0, 100]
    found = views(chart)
    bar = found["groups"][0]["views"][0]["traces"][1]["error_x"]
    assert (bar["array"], bar["arrayminus"], bar["symmetric"]) == ([50.0], [50.0], False)
    assert found["layout"]["xaxis"]["autorangeoptions"] == {"clipmin": 0, "clipmax": 100}


@pytest.mark.parametrize(
    "key", ["weights-digits-digits-1-shot-a-class", "scarcity-digits-digits-joint-training-jt-arml"]
)
def test_weights_are_not_negative(spread, key):
    for ends in outlines(spread[key]):
        assert min(ends) == 0
        assert max(ends) > 10
    assert drawn(spread[key]).axes[0].get_ylim()[0] == 0
    assert views(spread[key])["layout"]["yaxis"]["autorangeoptions"] == {"clipmin": 0}


def test_agreement_may_be_negative(tmp_path):
    for seed, agreement in enumerate((-1.0, 1.0)):
        write(tmp_path, SemiSupervised(seed=seed), 10.0, weights={"a": 1.0}, agreement=agreement)
    for ends in outlines(charts_of(tmp_path)["agreement-digits-50-labels"]):
        assert min(ends) < -10


def test_errors_of_numbers_may_be_above_100(tmp_path):
    """They are 100 (1 - R²): a network may do worse than always answering the mean."""
    for labels in (10, 100):
        for seed, error in enumerate((80.0, 140.0)):
            write(tmp_path, MultiLabel(labels=labels, seed=seed), error, measured={"test_rmse": 2.0})
    found = charts_of(tmp_path)
    assert drawn(found["error-yeast-class1-10-labels"]).axes[0].get_xlim()[1] > 400
    assert drawn(found["labels-yeast-class1"]).axes[0].get_ylim()[1] > 400


def test_the_curve_over_shots_says_that_all_are_left_out(spread, charts):
    chart = spread["labels-digits-digits"]
    assert chart.panels[0].series[0].x == [1, 5]
    assert chart.panels[0].title == "digits: digits, all labels are not shown"
    assert " Runs with all labels have no place on this axis and are left out; tables have them. " in chart.alt
    assert chart.alt.endswith("only on images of the target that were not learned from: not on its training images.")
    assert "all labels" not in charts["labels-digits-digits"].alt


def overhang(chart):
    """How far, in inches, something reaches beyond the figure."""
    figure = drawn(chart)
    FigureCanvasAgg(figure).draw()
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    return max(-box.x0, -box.y0, box.x1 - width, box.y1 - height)


def test_nothing_is_cut_off(charts):
    for key, chart in charts.items():
        assert overhang(chart) <= 0, key


def test_a_title_wider_than_its_figure_is_not_cut_off(tmp_path):
    dg_runs(tmp_path, dataset="pacs", targets=("art_painting", "sketch"), shots=(1,))
    chart = charts_of(tmp_path)["matrix-pacs-1-shot-a-class-joint-training-jt-arml"]
    assert overhang(chart) <= 0
    assert "\n" in drawn(chart).get_suptitle()


def test_long_names_are_not_cut_off(tmp_path):
    """A matrix of two by two with long names, many long names in a legend, and a line that leaves much out."""
    mains = ["a rather long name of a main task", "and_another_one_without_any_space_in_it_that_goes_on_and_on"]
    for main, other in (mains, mains[::-1]):
        for labels in (20, 50):
            run = {"main": main, "labels": labels}
            write(tmp_path, MultiLabel(**run), 30.0, weights={other: 1.5, "x": 0.5})
            write(tmp_path, MultiLabel(method="uniform", **run), 31.0, weights={other: 1.0, "x": 1.0})
            for number in range(24):
                left_out = (other, f"task number {number} with a name")
                write(tmp_path, MultiLabel(method="uniform", leave_out=left_out, **run), 32.0, weights={"x": 1.0})
    found = charts_of(tmp_path)
    assert {key.split("-")[0] for key in found} == {"error", "weights", "agreement", "labels", "scarcity", "matrix"}
    for kind in ("error", "weights", "labels", "scarcity", "matrix"):
        assert overhang(next(chart for key, chart in found.items() if key.startswith(kind))) <= 0, kind
