"""A report -> files."""

from pathlib import Path

from arml.report.contents import Report
from arml.report.output import matplotlib_figures
from arml.report.output.html import page
from arml.report.output.text import latex, markdown


def write(report: Report, folder: Path, *, most_figures: int, reload_every: float | None = None) -> list[Path]:
    """Writes page, tables and figures, those over several subjects first, into ``folder``; returns the figure files."""
    folder.mkdir(parents=True, exist_ok=True)
    _replace(folder / "index.html", page(report, reload_every=reload_every))
    _replace(folder / "tables.md", markdown(report.sheets()))
    _replace(folder / "tables.tex", latex(report.sheets()))
    # Drawing takes a good part of a second per chart: a report on many runs does not draw all of them.
    charts = [chart for section in reversed(report.sections) for chart in section.charts]
    return matplotlib_figures.save(charts[:most_figures], folder / "figures") if most_figures else []


def _replace(path: Path, content: str) -> None:
    """Writes the file whole or not at all: a browser may be reading it."""
    unfinished = path.with_name(f"{path.name}.part")
    unfinished.unlink(missing_ok=True)  # it may be a link to another file
    with unfinished.open("x", encoding="utf-8") as file:
        file.write(content)
    unfinished.replace(path)
