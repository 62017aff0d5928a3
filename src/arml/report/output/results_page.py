"""The results of one artefact as a page of Markdown, with where they come from."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from arml.report.contents import Report
from arml.report.output import matplotlib_figures
from arml.report.output.text import escape_markdown, markdown
from arml.report.tables.sheet import Sheet


class Origin(NamedTuple):
    """Where results come from."""

    command: str
    differences: Sequence[str]
    """Where the protocol is not the paper's."""
    trained: int
    """Runs that the last call trained; the others were finished before."""
    seconds: float
    """How long it took."""
    overview: str = ""
    """A sentence on what was compared."""


MOST_FIGURES = 4
"""Figures over several subjects that a page has."""


def write_results(report: Report, folder: Path, name: str, title: str, origin: Origin) -> Path:
    """Writes the report as ``name``.md with its figures into ``folder``; returns the page.

    What the page of ``arml report`` folds, and answers without a comparison, are left out.
    """
    charts = [chart._replace(key=f"{name}-{chart.key}") for chart in report.sections[-1].charts[:MOST_FIGURES]]
    matplotlib_figures.save(charts, folder / "figures")
    compared = [answer.text for answer in report.answers if answer.text.compares]
    answers = [line for text in compared for line in ("", *_answer_lines(text.lines()))]
    sentences = [escape_markdown(sentence) for section in report.sections for sentence in section.sentences]
    before = ["## What it shows", *answers, "", *(line for sentence in sentences for line in (sentence, ""))]
    figures = [f"![{escape_markdown(chart.alt)}](figures/{chart.key}.svg)" for chart in charts]
    before += [line for figure in figures for line in (figure, "")]
    origin = origin._replace(overview=report.overview)
    sheets = [sheet for section in report.sections for sheet in section.sheets]
    return write_sheets([*sheets, report.environments], folder, name, title, origin, before)


def write_sheets(
    sheets: Sequence[Sheet], folder: Path, name: str, title: str, origin: Origin, before: Sequence[str]
) -> Path:
    """Writes tables as ``name``.md into ``folder``, after where they come from and the lines ``before`` them."""
    folder.mkdir(parents=True, exist_ok=True)
    made = f"Made by `{origin.command}`. {escape_markdown(origin.overview)}".strip()
    page = [
        f"# {escape_markdown(title)}",
        "",
        f"{made} The last call trained {origin.trained} runs in {origin.seconds / 60:.0f} minutes.",
        "",
        "Differences from the paper's protocol:",
        "",
        *(f"- {escape_markdown(difference)}" for difference in origin.differences),
        "",
        *before,
        "",
        markdown(sheets),
    ]
    path = folder / f"{name}.md"
    path.write_text("\n".join(page).rstrip() + "\n", encoding="utf-8")
    return path


def _answer_lines(lines: Sequence[str]) -> list[str]:
    title, headline, *rest = map(escape_markdown, lines)
    return [f"### {title}", "", f"**{headline}**", "", *(f"- {line}" for line in rest)]
