"""The results of one artefact as a page of Markdown, with where they come from."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from arml.report.contents import Report
from arml.report.output import matplotlib_figures
from arml.report.output.text import escape_markdown, markdown


class Origin(NamedTuple):
    """Where results come from."""

    command: str
    differences: Sequence[str]
    """Where the protocol is not the paper's."""
    trained: int
    """Runs that the last call trained; the others were finished before."""
    seconds: float
    """How long it took."""


def write_results(report: Report, folder: Path, name: str, title: str, origin: Origin) -> Path:
    """Writes ``name``.md and its figures into ``folder``; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    charts = [chart._replace(key=f"{name}-{chart.key}") for chart in report.sections[-1].charts[:4]]
    matplotlib_figures.save(charts, folder / "figures")
    figures = [f"![{escape_markdown(chart.alt)}](figures/{chart.key}.svg)" for chart in charts]
    answers = [line for answer in report.answers for line in ("", *_answer_lines(answer.text.lines()))]
    sentences = [escape_markdown(sentence) for section in report.sections for sentence in section.sentences]
    page = [
        f"# {escape_markdown(title)}",
        "",
        f"Made by `{origin.command}`. {escape_markdown(report.overview)} The last call trained {origin.trained} runs in "
        f"{origin.seconds / 60:.0f} minutes.",
        "",
        "Differences from the paper's protocol:",
        "",
        *(f"- {escape_markdown(difference)}" for difference in origin.differences),
        "",
        "## What it shows",
        *answers,
        "",
        *(line for sentence in sentences for line in (sentence, "")),
        *(line for figure in figures for line in (figure, "")),
        markdown([*report.sheets(), report.environments]),
    ]
    path = folder / f"{name}.md"
    path.write_text("\n".join(page).rstrip() + "\n", encoding="utf-8")
    return path


def _answer_lines(lines: Sequence[str]) -> list[str]:
    title, headline, *rest = map(escape_markdown, lines)
    return [f"### {title}", "", f"**{headline}**", "", *(f"- {line}" for line in rest)]
