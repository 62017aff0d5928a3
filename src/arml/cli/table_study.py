"""What ``arml reproduce tables`` shows: how often each weighting helps, over many tables."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from arml.cli.compare import recorded_runs
from arml.cli.progress import say
from arml.lab.sweep import Outcome
from arml.report.data.comparison import comparisons
from arml.report.data.wins import make_cells, rank_lines
from arml.report.output.critical_difference import save_diagram
from arml.report.output.results_page import Origin, write_sheets
from arml.report.output.terminal import print_sheets
from arml.report.tables.win_sheets import ranking_sheet, tables_sheet, win_sheets
from arml.report.titles import line_title


def show_study(title: str, outcomes: Sequence[Outcome], origin: Origin, folder: Path, console: Console) -> None:
    """Prints the tables, and writes them with the diagram into ``folder``."""
    cells = make_cells(comparisons([*recorded_runs(outcomes)]))
    if len(cells) < 2:
        say(console, "Ranks need results of all lines on two tables or more: there are none yet.")
        return
    ranking, lines = rank_lines(cells)
    titles = {name: line_title(line) for name, line in lines.items()}
    sheets = [ranking_sheet(ranking, titles), *win_sheets(cells), tables_sheet(cells)]
    print_sheets(sheets, console)
    named = ranking._replace(mean_ranks={titles[name]: rank for name, rank in ranking.mean_ranks.items()})
    save_diagram(named, folder / "figures" / "tables-critical-difference")
    figure = "![Critical-difference diagram: mean ranks of all lines](figures/tables-critical-difference.svg)"
    say(console, f"results in {write_sheets(sheets, folder, 'tables-cpu', title, origin, [figure])}")
