"""Findings -> one self-contained page, tables and figures."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from arml.report.charts.chart import PALETTE
from arml.report.output import matplotlib_figures
from arml.report.output.html import embed
from arml.report.output.plotly_figures import views
from arml.report.output.text import markdown
from arml.theory.section import Section
from arml.theory.sections import make_sections
from arml.theory.session import Findings, Plan


def write_page(found: Findings, folder: Path) -> list[Path]:
    """Writes index.html, tables.md and the figures into ``folder``; returns the paths of the figures."""
    sections = make_sections(found)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_text(render(sections, found.plan), encoding="utf-8")
    sheets = [sheet for section in sections for sheet in section.sheets]
    (folder / "tables.md").write_text(markdown(sheets), encoding="utf-8")
    return matplotlib_figures.save([chart for section in sections for chart in section.charts], folder / "figures")


def render(sections: Sequence[Section], plan: Plan) -> str:
    """The page, in the look of the report: no server, no network."""
    shared, charts = files("arml.report.output"), [chart for section in sections for chart in section.charts]
    source = files("arml.theory").joinpath("page.html").read_text(encoding="utf-8")
    return (
        Environment(autoescape=True, undefined=StrictUndefined)
        .from_string(source)
        .render(
            sections=sections,
            command=command(plan),
            charts=embed({"palette": PALETTE, "charts": [views(chart) for chart in charts]}),
            # Our own files and Plotly's are trusted: they must not be escaped.
            css=Markup(shared.joinpath("page.css").read_text(encoding="utf-8")),
            js=Markup(shared.joinpath("page.js").read_text(encoding="utf-8")),
            plotly=Markup(shared.joinpath("plotly-cartesian.min.js").read_text(encoding="utf-8")),
        )
    )


def command(plan: Plan) -> str:
    """What to type to compute the same again.

    >>> command(Plan(seed=3, quick=True))
    'arml theory --seed 3 --quick'
    """
    return f"arml theory --seed {plan.seed}" + (" --quick" if plan.quick else "")
