"""Progress bars, and lines that print as they are."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from arml.report.output.visible import show_controls

if TYPE_CHECKING:
    from arml.lab.data.cache import ReportCount


def say(console: Console, *lines: str) -> None:
    """Prints lines as they are: names may contain what rich takes for markup, and paths must not wrap."""
    for line in lines:
        console.print(show_controls(line), highlight=False, markup=False, soft_wrap=True)


def bar(console: Console, *, status: bool = False) -> Progress:
    """A bar with counts, elapsed and remaining time; with ``status``, tasks show a field of that name at the end."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    more = (TextColumn("{task.fields[status]}", markup=False),) if status else ()
    return Progress(*columns, TextColumn("left"), TimeRemainingColumn(), *more, console=console)


@contextmanager
def plain_warnings(console: Console) -> Iterator[None]:
    """Prints warnings about the user's data as plain lines."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    say(console, *dict.fromkeys(str(warning.message) for warning in caught))


@contextmanager
def count_bar(what: str, console: Console) -> Iterator["ReportCount"]:
    """A bar that appears with the first count. Work that takes no time shows none."""
    with bar(console) as progress:
        tasks: list[TaskID] = []

        def count(done: int, total: int) -> None:
            if not tasks:
                tasks.append(progress.add_task(what, total=total))
            progress.update(tasks[0], completed=done)

        yield count
