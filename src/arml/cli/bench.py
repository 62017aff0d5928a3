"""``arml bench``: what learning the weights costs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path

from rich.console import Console

from arml.bench.cost_targets import judge_targets
from arml.bench.peers import NO_TORCHJD, has_torchjd
from arml.bench.publish import publish, verdict, write_cost
from arml.bench.request import Request
from arml.bench.result import Result, read_result
from arml.bench.session import Session, begin, measure
from arml.bench.tables import sheets
from arml.bench.timing import Tick
from arml.cli.options import Bench
from arml.cli.progress import count_bar, plain_warnings, say
from arml.cli.train import check_at_least_one
from arml.report.output.terminal import print_sheets


def run_bench(command: Bench, console: Console) -> int:
    """Measure, print and write; 0 if every target that was measured is met, 1 if one is not."""
    session = Session(**{part.name: getattr(command, part.name) for part in fields(Request)})
    _check(session)
    if command.again is not None:
        return _show(read_result(command.again), command.out, console)
    _announce(command, session, console)

    @contextmanager
    def watch(title: str) -> Iterator[Tick]:
        with plain_warnings(console), count_bar(title, console) as tick:
            yield tick

    begun = found = begin(session)
    try:
        for found in measure(begun, session, watch):
            write_cost(found, command.out)
    except KeyboardInterrupt:
        _show(found, command.out, console)
        raise
    return _show(found, command.out, console)


def _check(session: Session) -> None:
    for name in ("threads", "repeats", "batch"):
        value = getattr(session, name)
        check_at_least_one(f"--{name}", 1 if value is None else value)
    if not session.seconds > 0:
        raise ValueError(f"--seconds should be a positive number. Got {session.seconds:g}.")
    for k in session.chosen_num_aux():
        check_at_least_one("--num-aux", k)


def _announce(command: Bench, session: Session, console: Console) -> None:
    clock, tasks = session.plan().clock_name(), ", ".join(map(str, session.chosen_num_aux()))
    names = [kind.name for kind in session.chosen_kinds()]
    say(console, f"Time and memory of training steps with K = {tasks} auxiliary tasks, in turns, by {clock}:")
    say(console, *(f"  {name}" for name in [*names, *session.chosen_parts()]))
    if replace(command, quick=False, out=Bench.out) == Bench():
        say(console, "Less than a minute." if command.quick else "About 25 minutes on one core; --quick takes one.")
    if not has_torchjd():
        say(console, NO_TORCHJD)


def _show(result: Result, out: Path, console: Console) -> int:
    """Print the short tables and the verdict on the targets, and write all files."""
    judged = judge_targets(result)
    print_sheets([sheet for sheet in sheets(result, judged) if sheet.brief], console)
    paths = publish(result, out)
    say(console, *verdict(judged, quick=bool(result.settings["brief"])))
    names = [path.name for path in paths] if result.timings else [*(path.name for path in paths), "no figures"]
    say(console, f"files in {out}: {', '.join(names)}")
    return 1 if any(target.met is False for target in judged) else 0
