"""``arml compare``: learners and methods over seeds and numbers of labels."""

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro
from rich.console import Console

from arml.cli.progress import bar, counting, remarks, say
from arml.cli.settings import SETTINGS, build
from arml.cli.train import Preset, at_least_one, data_folder
from arml.lab.run import Run
from arml.lab.sweep import Outcome, run_all
from arml.lab.trace import read
from arml.lab.train import train
from arml.report.output.terminal import print_tables
from arml.report.tables.rows import as_json, tables

R = TypeVar("R", bound=Run)
T = TypeVar("T")


@dataclass(frozen=True)
class Compare(Generic[R, T]):
    """Train every compared learner, with every way to weigh its auxiliary tasks, over seeds, and show the table."""

    run: Annotated[R, tyro.conf.arg(name="")]
    table_lines: Annotated[T, tyro.conf.arg(name="")]
    preset: Preset = "cpu"
    """Defaults of all other options: cpu takes minutes, paper is the exact protocol of the paper."""
    seeds: int = 3
    """Runs of each line, with seeds 0, 1, ...; all lines have the same splits."""
    workers: int = 2
    """Runs side by side, each with one thread."""
    out: Path = Path("runs")
    """Where folders of runs are made. Finished runs found there are not repeated."""
    data_dir: Path = field(default_factory=data_folder)
    """Where data sets are; default: the environment variable ARML_DATA, or data."""
    paper: bool = False
    """Show the paper's own figures beside ours, where it has them."""


def run_compare(command: Compare[Run, Any], console: Console) -> int:
    """Runs what is missing, shows tables, writes them as JSON; 1 if a run failed."""
    at_least_one("--seeds", command.seeds)
    setting = SETTINGS[command.run.setting]
    base = setting.completed(command.run)
    runs = command.table_lines.runs(base, command.seeds)
    with remarks(console), counting("reading data", console) as count:
        for one in {run.subject(): run for run in runs}.values():
            setting.prepare(one, command.data_dir, command.out / "cache", count)
    outcomes = run_with_progress(runs, command.out, command.data_dir, command.workers, console)
    finished = tables([read(o.folder / "record.jsonl") for o in outcomes if o.failure is None])
    print_tables(finished, console, paper=command.paper, protocol=f"--preset {command.preset}")
    path = command.out / f"compare-{base.setting}-{base.subject().dataset}.json"
    path.write_text(json.dumps(as_json(finished), indent=1))
    say(console, f"tables in {path}, one record for each run in {command.out}")
    return report_failures(outcomes, console)


def work(run: Run, folder: Path, *, data_dir: Path) -> None:
    """One run in a process of its own, continued from its checkpoint if there is one.

    Its warnings go to a file beside the record: among those of other runs, below a bar, nobody could read them.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        train(run, build(run, data_dir, folder.parent / "cache"), folder, resume=True)
    if caught:
        texts = dict.fromkeys(f"{warning.category.__name__}: {warning.message}" for warning in caught)
        (folder / "warnings.txt").write_text("\n".join(texts) + "\n")


def run_with_progress(runs: Sequence[Run], out: Path, data_dir: Path, workers: int, console: Console) -> list[Outcome]:
    """All runs that are not finished, with a bar; what fails is said at once."""
    at_least_one("--workers", workers)
    out.mkdir(parents=True, exist_ok=True)
    with bar(console) as progress:
        task = progress.add_task("runs", total=len(runs))

        def watch(outcome: Outcome) -> None:
            progress.advance(task)
            if outcome.failure is not None:
                say(progress.console, f"failed: {outcome.run.name()}: {outcome.failure.strip().splitlines()[-1]}")

        return run_all(runs, out, partial(work, data_dir=data_dir), workers=workers, watch=watch)


def report_failures(outcomes: Sequence[Outcome], console: Console) -> int:
    """Says which runs failed and where it stands why; 1 if any did."""
    failed = [outcome for outcome in outcomes if outcome.failure is not None]
    for outcome in failed:
        (outcome.folder / "failure.txt").parent.mkdir(parents=True, exist_ok=True)
        (outcome.folder / "failure.txt").write_text(outcome.failure or "")
    if failed:
        say(console, f"{len(failed)} of {len(outcomes)} runs failed; why is in failure.txt of their folders:")
        for outcome in failed:
            say(console, f"  {outcome.folder}")
    return 1 if failed else 0
