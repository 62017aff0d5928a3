"""Progress bars."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

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

from arml.lab.data.cache import ReportCount


def say(console: Console, *lines: str) -> None:
    """Prints lines as they are: names may hold what rich takes for markup, and paths should not be broken."""
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def bar(console: Console, *, seen: bool = False) -> Progress:
    """A bar with counts, time gone and time left; with ``seen``, tasks have a field of that name behind it."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    more = (TextColumn("{task.fields[seen]}", markup=False),) if seen else ()
    return Progress(*columns, TimeRemainingColumn(), *more, console=console)


@contextmanager
def remarks(console: Console) -> Iterator[None]:
    """Warnings about the user's data become plain lines."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    say(console, *dict.fromkeys(str(warning.message) for warning in caught))


@contextmanager
def counting(what: str, console: Console) -> Iterator[ReportCount]:
    """A bar that appears with the first count; work that takes no time shows none."""
    with bar(console) as progress:
        tasks: list[TaskID] = []

        def count(done: int, total: int) -> None:
            if not tasks:
                tasks.append(progress.add_task(what, total=total))
            progress.update(tasks[0], completed=done)

        yield count
