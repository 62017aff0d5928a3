"""The time left, as a progress bar shows it, and warnings."""

import io
import warnings

import pytest
from rich.console import Console
from rich.progress import Progress

from arml.cli.progress import LogLines, TimeLeft, plain_warnings


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


def logged(*counts, terminal=False):
    """What is printed after the numbers of seconds and of finished runs in ``counts``."""
    now, console = [0.0], Console(file=io.StringIO(), force_terminal=terminal, color_system=None)
    with Progress(get_time=lambda: now[0], disable=True) as progress:
        task, lines = progress.add_task("runs", total=60), LogLines(console)
        for seconds, completed in counts:
            now[0] = seconds
            progress.update(task, completed=completed)
            lines.tell(progress.tasks[0])
    return console.file.getvalue().splitlines()


def test_a_log_file_gets_a_line_per_minute_at_most():
    # Ten runs were there already; then one ends every 20 seconds.
    found = logged((0.1, 10), *((20.0 * run, 10 + run) for run in range(1, 51)))
    assert found[:2] == ["runs 13/60 after 0:01:00, left 0:15:40", "runs 16/60 after 0:02:00, left 0:14:40"]
    assert len(found) == 16  # the last run ends the work: what comes then says more than a line


def test_a_terminal_has_a_bar_and_no_lines():
    assert logged((0.1, 0), (70.0, 1), (140.0, 2), terminal=True) == []


def test_warnings_are_shown_also_if_the_work_is_stopped():
    def work():
        warnings.warn("the checkpoint is damaged", stacklevel=1)
        raise KeyboardInterrupt

    console = Console(file=io.StringIO())
    with pytest.raises(KeyboardInterrupt), plain_warnings(console):
        work()
    assert console.file.getvalue() == "the checkpoint is damaged\n"
