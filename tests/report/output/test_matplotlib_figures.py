"""Figures as files."""

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image
from report.made_records import dg_runs, write
from report.made_reports import make_charts

from arml.lab.run_kinds import MultiLabel, SemiSupervised
from arml.report.charts.chart import PALETTE
from arml.report.output.matplotlib_figures import MARKERS, STYLES, draw_figure, save


def test_curves_differ_in_more_than_colour(charts):
    """No two of twice as many curves as colours share colour, style and marker."""
    looks = {(PALETTE[i % 8], STYLES[(i + i // 8) % 4], MARKERS[i % 8]) for i in range(16)}
    assert len(looks) == 16
    figure = draw_figure(charts["weights-yeast-class1-50-labels"])
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


def test_there_are_no_half_shots(charts):
    ticks = draw_figure(charts["labels-digits-domains"]).axes[0].get_xticks()
    assert ticks.tolist() == [round(tick) for tick in ticks]


def overhang(chart):
    """How far, in inches, something reaches beyond the figure."""
    figure = draw_figure(chart)
    FigureCanvasAgg(figure).draw()
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    return max(-box.x0, -box.y0, box.x1 - width, box.y1 - height)


@pytest.mark.slow
def test_nothing_is_cut_off(charts):
    for key, chart in charts.items():
        assert overhang(chart) <= 0, key


def test_a_curve_beyond_its_axis_is_cut_off(tmp_path):
    """It would run through the title, and leave no room for the panel."""
    for seed in range(2):
        write(tmp_path, SemiSupervised(seed=seed), 10.0, weights={"a": 1.0}, agreement=150.0, cosine=None)
    assert overhang(make_charts(tmp_path)["agreement-digits-50-labels"]) <= 0


def test_a_title_wider_than_its_figure_is_not_cut_off(tmp_path):
    dg_runs(tmp_path, dataset="pacs", targets=("art_painting", "sketch"), shots=(1,))
    chart = make_charts(tmp_path)["matrix-pacs-1-shot-per-class-joint-training-jt-arml"]
    assert overhang(chart) <= 0
    assert "\n" in draw_figure(chart).get_suptitle()


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
    found = make_charts(tmp_path)
    assert {key.split("-")[0] for key in found} == {"error", "weights", "agreement", "labels", "scarcity", "matrix"}
    for kind in ("error", "weights", "labels", "scarcity", "matrix"):
        assert overhang(next(chart for key, chart in found.items() if key.startswith(kind))) <= 0, kind
