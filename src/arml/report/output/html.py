"""The report as one self-contained page: no server, no network."""

import json
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from arml.report.charts.answer_charts import TONE
from arml.report.charts.chart import PALETTE
from arml.report.contents import Report
from arml.report.output.plotly_figures import views

MOST_ANSWERS = 6
"""Answers on the first screens; the others are in their sections."""
MOST_BADGES = 8
"""Tasks whose badges are not folded."""


def page(report: Report, *, reload_every: float | None = None) -> str:
    """The page. Names from records are escaped everywhere.

    Args:
        report: What the page shows.
        reload_every: Seconds after which the page reloads itself, while runs go on.
    """
    charts = [*report.charts(), *(chart for one in report.answers[:MOST_ANSWERS] for chart in one.charts)]
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(_read_part("page.html"))
    return template.render(
        report=report,
        most=MOST_ANSWERS,
        most_badges=MOST_BADGES,
        tones=TONE,
        watch="" if reload_every is None else f"{reload_every:g}",
        charts=embed({"palette": PALETTE, "charts": [views(chart) for chart in charts]}),
        # Our own files and Plotly's, see tools/fetch_plotly.py, are trusted: they must not be escaped.
        css=Markup(_read_part("page.css")),
        js=Markup(_read_part("page.js")),
        plotly=Markup(_read_part("plotly-cartesian.min.js")),
    )


def embed(data: dict[str, Any]) -> Markup:
    r"""JSON that is safe inside a page: nothing in it can end the element around it.

    >>> print(embed({"name": "</script>"}))
    {"name":"\u003c/script>"}
    """
    plain = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return Markup(plain.replace("<", "\\u003c").replace("&", "\\u0026"))


def _read_part(name: str) -> str:
    return files("arml.report.output").joinpath(name).read_text(encoding="utf-8")
