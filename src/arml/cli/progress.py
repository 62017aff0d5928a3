"""Progress bars, and lines that print as they are."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from arml.report.output.visible import show_controls

if TYPE_CHECKING:
    from arml.lab.data.cache import ReportCount


def say(console: Console, *lines: str) -> None:
    """Prints lines as they are: names may contain what rich takes for markup, and paths must not wrap."""
    for line in lines:
        console.print(show_controls(line), highlight=False, markup=False, soft_wrap=True)


class TimeLeft(ProgressColumn):
    """The time left if the rest goes on at the mean pace so far.

    Rich's own column measures the pace of the last 30 seconds, in which no run or only a short one may have ended.
    What was there already is reported within the first second, and says nothing about the pace.
    """

    def __init__(self) -> None:
        super().__init__()
        self._found: dict[TaskID, float] = {}

    def render(self, task: Task) -> Text:
        """Hours, minutes and seconds."""
        elapsed = task.elapsed or 0.0
        if elapsed < 1:
            self._found[task.id] = task.completed
        done = task.completed - self._found.get(task.id, 0)
        if task.finished or not done or task.remaining is None:
            return Text("0:00:00" if task.finished else "-:--:--", style="progress.remaining")
        return Text(str(timedelta(seconds=round(elapsed * task.remaining / done))), style="progress.remaining")


class LogLines:
    """How far the work is in lines of text, one per minute at most, where no bar is shown: in a log file."""

    EVERY = 60.0
    """Seconds between two lines."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._left = TimeLeft()
        self._next = self.EVERY

    def tell(self, task: Task) -> None:
        """To be called whenever a unit is finished."""
        left, elapsed = self._left.render(task), task.elapsed or 0.0
        if self._console.is_terminal or task.finished or elapsed < self._next:
            return
        self._next = elapsed + self.EVERY
        since = timedelta(seconds=round(elapsed))
        say(self._console, f"{task.description} {task.completed:.0f}/{task.total:.0f} after {since}, left {left.plain}")


def bar(console: Console, *, status: bool = False, slow: bool = False) -> Progress:
    """A bar with counts, elapsed and remaining time.

    With ``status``, tasks show a field of that name at the end; with ``slow``, a single unit may take minutes.
    """
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    more = (TextColumn("{task.fields[status]}", markup=False),) if status else ()
    left = TimeLeft() if slow else TimeRemainingColumn()
    return Progress(*columns, TextColumn("left"), left, *more, console=console)


@contextmanager
def plain_warnings(console: Console) -> Iterator[None]:
    """Prints warnings about the user's data as plain lines, also if the work is stopped or fails."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
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
