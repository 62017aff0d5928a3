"""``arml compare``: learners and methods over seeds and numbers of labels."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro
from rich.console import Console

from arml.cli.progress import bar, count_bar, plain_warnings, say
from arml.cli.train import Preset, check_at_least_one
from arml.lab.build import Folders, complete
from arml.lab.build.settings import check_data
from arml.lab.divergence import DivergedError
from arml.lab.environment import data_folder
from arml.lab.run import Run, fit_file_name
from arml.lab.sweep import Outcome, run_all
from arml.lab.trace import Recorded, read
from arml.report.output.terminal import print_tables
from arml.report.tables.rows import as_json, tables

R = TypeVar("R", bound=Run)
T = TypeVar("T")


@dataclass(frozen=True)
class Compare(Generic[R, T]):
    """Train every learner with the weighting methods of --methods over several seeds, and show the table."""

    run: Annotated[R, tyro.conf.arg(name="")]
    table_lines: Annotated[T, tyro.conf.arg(name="")]
    preset: Preset = "cpu"
    """Sets the defaults of all other options: cpu takes two minutes per run at most, paper is the
    paper's exact protocol."""
    seeds: int = 3
    """Runs per line, with seeds 0, 1, ... All lines share the same splits."""
    workers: int = 2
    """Number of runs side by side, each with one thread."""
    out: Path = Path("runs")
    """Where to make the folders of runs. Finished runs found there are not repeated."""
    data_dir: Path = field(default_factory=data_folder)
    """Where data sets are. Default: the environment variable ARML_DATA, or data."""
    paper: bool = False
    """Also show the paper's own figures, where it has them."""


def run_compare(command: Compare[Run, Any], console: Console) -> int:
    """Trains what is missing, shows the tables and writes them as JSON; returns 1 if a run failed."""
    check_at_least_one("--seeds", command.seeds)
    base = complete(command.run)
    runs = command.table_lines.runs(base, command.seeds)
    with plain_warnings(console), count_bar("reading data", console) as count:
        check_data(runs, Folders(command.data_dir, command.out / "cache"), count)
    outcomes = run_with_progress(runs, command.out, command.data_dir, command.workers, console)
    finished = tables([*recorded_runs(outcomes)], [o.run for o in outcomes if o.failure is not None])
    print_tables(finished, console, paper=command.paper, protocol=f"--preset {command.preset}")
    path = command.out / f"{fit_file_name(f'compare-{base.setting}-{base.subject().dataset}')}.json"
    path.write_text(json.dumps(as_json(finished), indent=1))
    say(console, f"tables in {path}, one record per run in {command.out}")
    return report_failures(outcomes, console)


def run_with_progress(runs: Sequence[Run], out: Path, data_dir: Path, workers: int, console: Console) -> list[Outcome]:
    """Trains all unfinished runs with a progress bar, and reports failures at once."""
    check_at_least_one("--workers", workers)
    with bar(console) as progress:
        task = progress.add_task("runs", total=len(runs))

        def watch(outcome: Outcome) -> None:
            progress.advance(task)
            if outcome.failure is not None:
                say(progress.console, f"failed: {outcome.run.name()}: {outcome.failure.strip().splitlines()[-1]}")

        return run_all(runs, out, data_dir=data_dir, workers=workers, watch=watch)


def recorded_runs(outcomes: Sequence[Outcome]) -> Iterator[Recorded]:
    """The records of runs with a result, and of those that diverged, which tables count."""
    for outcome in outcomes:
        if outcome.failure is None or DivergedError.__name__ in outcome.failure:
            yield read(outcome.folder / "record.jsonl")


def report_failures(outcomes: Sequence[Outcome], console: Console) -> int:
    """Says which runs failed and where the reason is; 1 if any did."""
    failed = [outcome.folder for outcome in outcomes if outcome.failure is not None]
    if failed:
        say(console, f"{len(failed)} of {len(outcomes)} runs failed; failure.txt in their folders says why:")
        say(console, *(f"  {folder}" for folder in failed))
    return 1 if failed else 0
