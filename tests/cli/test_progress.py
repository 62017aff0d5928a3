"""The time left, as a progress bar shows it, and warnings."""

import io
import warnings

import pytest
from rich.console import Console
from rich.progress import Progress

from arml.cli.progress import TimeLeft, plain_warnings


def left_after(*counts):
    """What the column shows after the numbers of seconds and of finished units in ``counts``."""
    now = [0.0]
    with Progress(get_time=lambda: now[0], disable=True) as progress:
        task, column = progress.add_task("runs", total=60), TimeLeft()
        shown = ""
        for seconds, completed in counts:
            now[0] = seconds
            progress.update(task, completed=completed)
            shown = column.render(progress.tasks[0]).plain
        return shown


def test_the_time_left_follows_the_mean_pace_however_long_a_unit_takes():
    # 13 runs in 26 minutes: the other 47 take 94 minutes.
    assert left_after((0.1, 0), *((120.0 * run, run) for run in range(1, 14))) == "1:34:00"


def test_runs_that_were_there_already_say_nothing_about_the_pace():
    assert left_after((0.1, 0), (0.5, 40), (100.5, 40)) == "-:--:--"
    assert left_after((0.1, 0), (0.5, 40), (100.0, 42)) == "0:15:00"


def test_nothing_is_left_at_the_end():
    assert left_after((0.1, 0), (50.0, 60)) == "0:00:00"


def test_warnings_are_shown_also_if_the_work_is_stopped():
    def work():
        warnings.warn("the checkpoint is damaged", stacklevel=1)
        raise KeyboardInterrupt

    console = Console(file=io.StringIO())
    with pytest.raises(KeyboardInterrupt), plain_warnings(console):
        work()
    assert console.file.getvalue() == "the checkpoint is damaged\n"
