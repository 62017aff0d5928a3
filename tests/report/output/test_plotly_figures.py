"""Charts as data for the page."""

import json

import plotly.graph_objects as go

from arml.report.output.plotly_figures import ALL_SEEDS, views


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
