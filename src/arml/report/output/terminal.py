"""Tables on the terminal."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from arml.lab.run import Subject
from arml.report.output.visible import show_controls
from arml.report.tables.answer_text import AnswerText
from arml.report.tables.results import result_sheet
from arml.report.tables.rows import Row
from arml.report.tables.sheet import Cell, Sheet

WIDE = 110
"""Letters per line from which on a terminal shows all columns."""
INDENT = 2
"""Letters before a line of an answer."""


def print_tables(tables: Mapping[Subject, Sequence[Row]], console: Console, *, paper: bool, protocol: str) -> None:
    """Prints all tables, with notes on their numbers below."""
    print_sheets([result_sheet(subject, rows, paper=paper) for subject, rows in tables.items()], console)
    if paper:
        console.print(f"Our runs follow {protocol}.", highlight=False)


def print_answers(answers: Sequence[AnswerText], console: Console) -> None:
    """Prints what to do, per experiment, in at most ten lines each."""
    for answer in answers:
        title, headline, *rest = answer.lines(console.width - INDENT)
        console.print(title, style="bold", highlight=False, markup=False)
        console.print(Padding(Text(headline, "bold"), (0, 0, 0, INDENT), expand=False))
        for line in rest:
            console.print(Padding(Text(line), (0, 0, 0, INDENT), expand=False))


def print_sheets(sheets: Sequence[Sheet], console: Console) -> None:
    """Prints tables one by one; notes that all of them share come once, at the end."""
    notes = [note for sheet in sheets for note in sheet.notes]
    common = [note for note in dict.fromkeys(notes) if notes.count(note) == len(sheets)]
    for sheet in sheets:
        console.print(make_table(sheet if console.width >= WIDE else sheet.narrow()))
        for note in sheet.notes:
            if note not in common:
                console.print(show_controls(note), highlight=False, markup=False)
    for note in common:
        console.print(show_controls(note), highlight=False, markup=False)


def make_table(sheet: Sheet) -> Table:
    """The sheet as a table of rich."""
    table = Table(title=_escape(sheet.title))
    for column, heading in enumerate(sheet.headings):
        table.add_column(_escape(heading), justify="left" if sheet.is_text(column) else "right", overflow="fold")
    for row in sheet.rows:
        table.add_row(*(_cell_markup(cell) for cell in row))
    return table


def _cell_markup(cell: Cell) -> str:
    return f"[bold]{_escape(cell.text)}[/bold]" if cell.strong else _escape(cell.text)


def _escape(words: str) -> str:
    return escape(show_controls(words))
