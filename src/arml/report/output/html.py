"""The report as one page that needs nothing else: no server, no network."""

import json
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from arml.report.charts.chart import PALETTE
from arml.report.contents import Report
from arml.report.output.plotly_figures import views

MOST_FINDINGS = 6
"""Subjects in the summary; the others are in their sections."""


def page(report: Report, *, reload_every: float | None = None) -> str:
    """The page. Names from records are escaped wherever they stand.

    Args:
        report: What it shows.
        reload_every: Seconds after which the page loads itself again, while runs go on.
    """
    charts = report.charts()
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(_part("page.html"))
    return template.render(
        report=report,
        front=charts[0] if charts else None,
        most=MOST_FINDINGS,
        watch="" if reload_every is None else f"{reload_every:g}",
        charts=embedded({"palette": PALETTE, "charts": [views(chart) for chart in charts]}),
        # Ours and Plotly's: trusted, and not to be escaped.
        css=Markup(_part("page.css")),
        js=Markup(_part("page.js")),
        plotly=Markup(_plotly()),
    )


def embedded(data: dict[str, Any]) -> Markup:
    r"""JSON that can stand in a page: nothing in it can end the element it is in.

    >>> print(embedded({"name": "</script>"}))
    {"name":"\u003c/script>"}
    """
    written = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return Markup(written.replace("<", "\\u003c").replace("&", "\\u0026"))


def _part(name: str) -> str:
    return files("arml.report.output").joinpath(name).read_text(encoding="utf-8")


def _plotly() -> str:
    from plotly.offline import get_plotlyjs  # here: tables do without

    return str(get_plotlyjs())
