"""``arml compare``: learners and methods over seeds and numbers of labels."""

import json
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from arml.cli.names import build
from arml.cli.train import Preset, data_folder
from arml.lab.experiments import semi_supervised as ssl
from arml.lab.run import LearnerName, MethodName, Run
from arml.lab.sweep import Outcome, run_all
from arml.lab.trace import read
from arml.lab.train import train
from arml.report.paper import QUOTED_NOTE
from arml.report.summary import FORMULA
from arml.report.table import Group, Row, best, tables


@dataclass(frozen=True)
class Compare:
    """Train every compared learner and S4L with every way to weigh its tasks, over seeds, and show the table."""

    run: Annotated[Run, tyro.conf.arg(name="")]
    preset: Preset = "cpu"
    """Defaults of all other options: cpu takes minutes, paper is the exact protocol of the paper."""
    seeds: int = 3
    """Runs of each line, with seeds 0, 1, ...; all lines have the same splits."""
    label_counts: tuple[int, ...] = ()
    """Numbers of labels to compare at, for the curve of labels against error; none: the preset's."""
    learners: tuple[LearnerName, ...] = ssl.COMPARED
    """Learners beside S4L."""
    methods: tuple[MethodName, ...] = ssl.WEIGHTINGS
    """Ways to weigh S4L's auxiliary tasks."""
    grid: bool = True
    """Also search a grid of fixed weights, the best by validation error: an upper bound that trains many times."""
    workers: int = 2
    """Runs side by side, each with one thread."""
    out: Path = Path("runs")
    """Where folders of runs are made. Finished runs found there are not repeated."""
    data_dir: Path = field(default_factory=data_folder)
    """Where data sets are; default: the environment variable ARML_DATA, or data."""
    paper: bool = False
    """Show the paper's own figures beside ours, where it has them."""


def run_compare(command: Compare, console: Console) -> int:
    """Runs what is missing, shows tables, writes them as JSON; 1 if a run failed."""
    counts = command.label_counts or (command.run.labels,)
    lines = {"compared": command.learners, "weightings": command.methods}
    runs = ssl.table(command.run, seeds=command.seeds, labels=counts, grid=command.grid, **lines)  # type: ignore[arg-type]
    outcomes = _with_progress(runs, command, console)
    finished = tables([read(o.folder / "record.jsonl") for o in outcomes if o.failure is None])
    for group, rows in finished.items():
        console.print(shown(group, rows, paper=command.paper))
        if best(rows) is None:
            console.print("No line is best beyond doubt: the intervals of the first two overlap.")
    console.print(f"error: {FORMULA}; chosen by validation error, test images looked at once")
    console.print("difference: paired on the same seeds; * where its interval excludes 0")
    if command.paper:
        console.print(f"(quoted): {QUOTED_NOTE}. Our runs follow --preset {command.preset}.")
    path = command.out / f"compare-{command.run.dataset}.json"
    path.write_text(json.dumps([_as_json(group, row) for group, rows in finished.items() for row in rows], indent=1))
    console.print(f"tables in {path}, one record for each run in {command.out}")
    return _report_failures(outcomes, console)


def work(run: Run, folder: Path, *, data_dir: Path) -> None:
    """One run in a process of its own, continued from its checkpoint if there is one."""
    train(run, build(run, data_dir, folder.parent / "cache"), folder, resume=True)


def _with_progress(runs: list[Run], command: Compare, console: Console) -> list[Outcome]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        bar = progress.add_task("runs", total=len(runs))

        def watch(outcome: Outcome) -> None:
            progress.advance(bar)
            if outcome.failure is not None:
                progress.console.print(f"failed: {outcome.run.name()}: {outcome.failure.strip().splitlines()[-1]}")

        one = partial(work, data_dir=command.data_dir)
        return run_all(runs, command.out, one, workers=command.workers, watch=watch)


def _report_failures(outcomes: list[Outcome], console: Console) -> int:
    failed = [outcome for outcome in outcomes if outcome.failure is not None]
    for outcome in failed:
        (outcome.folder / "failure.txt").parent.mkdir(parents=True, exist_ok=True)
        (outcome.folder / "failure.txt").write_text(outcome.failure or "")
    if failed:
        console.print(f"{len(failed)} of {len(outcomes)} runs failed; why is in failure.txt of their folders:")
        for outcome in failed:
            console.print(f"  {outcome.folder}")
    return 1 if failed else 0


def shown(group: Group, rows: list[Row], *, paper: bool) -> Table:
    """The table of one data set and number of labels."""
    winner = best(rows)
    table = Table(title=f"Test error in %: {group.dataset}, {group.labels} labels")
    for heading in ("", "error", "difference to uniform", "weights", "n"):
        table.add_column(heading, justify="left" if heading in ("", "weights") else "right")
    if paper:
        table.add_column("paper", justify="right")
    for row in rows:
        against = (
            ""
            if row.against_uniform is None
            else f"{row.against_uniform.mean:+.2f} ± {row.against_uniform.half_width:.2f}"
        )
        mark = "*" if row.against_uniform is not None and row.against_uniform.excludes_zero() else ""
        weights = "  ".join(f"{name} {weight:.2f}" for name, weight in row.weights.items())
        error = f"[bold]{row.error}[/bold]" if row.key == winner else str(row.error)
        table.add_row(row.title(), error, against + mark, weights, str(row.error.n), *([row.paper] if paper else []))
    return table


def _as_json(group: Group, row: Row) -> dict[str, object]:
    against = None if row.against_uniform is None else row.against_uniform._asdict()
    own = {"line": row.key, "title": row.title(), "error": row.error._asdict(), "against_uniform": against}
    return group._asdict() | own | {"weights": row.weights, "paper": row.paper}
