"""``arml compare``: learners and methods over seeds and numbers of labels."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

import tyro
from rich.console import Console

from arml.cli.progress import bar, count_bar, plain_warnings, say
from arml.cli.train import Preset, check_at_least_one
from arml.lab.build import Folders, complete
from arml.lab.build.settings import check_data
from arml.lab.engines import EngineSettings, Local, OnRay
from arml.lab.environment import data_folder
from arml.lab.run import Run
from arml.lab.runs_root import open_root
from arml.lab.sweep import Outcome, run_all
from arml.lab.trace import read
from arml.lab.tuned import apply_tuned, read_tuned
from arml.report.output.terminal import print_tables
from arml.report.tables.rows import as_json, tables

R = TypeVar("R", bound=Run)
T = TypeVar("T")


@dataclass(frozen=True)
class EngineOptions:
    """Where runs are trained."""

    engine: Literal["local", "ray"] = "local"
    """Where to train: on this machine, or on a Ray cluster."""
    workers: int = 2
    """For local: number of runs side by side, each with one thread."""
    address: str = ""
    """For ray: address of the cluster, or auto; none: start Ray on this machine."""
    cpus_per_run: float = 1.0
    """For ray: cores that a run takes."""
    gpus_per_run: float = 0.0
    """For ray: GPUs that a run takes; 0.25 puts four runs on one."""

    def settings(self) -> EngineSettings:
        """The engine that these options describe."""
        check_at_least_one("--workers", self.workers)
        if self.cpus_per_run < 0 or self.gpus_per_run < 0 or self.cpus_per_run + self.gpus_per_run == 0:
            raise ValueError(
                "A run needs a part of a core or of a GPU. "
                f"Got --cpus-per-run {self.cpus_per_run:g} and --gpus-per-run {self.gpus_per_run:g}."
            )
        if self.engine == "ray":
            return OnRay(self.address, self.cpus_per_run, self.gpus_per_run)
        return Local(self.workers)


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
    engine: Annotated[EngineOptions, tyro.conf.arg(name="")] = field(default_factory=EngineOptions)
    """Where runs are trained."""
    out: Path = Path("runs")
    """Where to make the folders of runs: a folder, or a URL such as s3://bucket/runs. Finished runs found there are
    not repeated."""
    settings: Path | None = None
    """A file of `arml tune` with rates and weight steps for some of the lines; none: all lines as the options say."""
    data_dir: Path = field(default_factory=data_folder)
    """Where data sets are. Default: the environment variable ARML_DATA, or data."""
    paper: bool = False
    """Also show the paper's own figures, where it has them."""


def run_compare(command: Compare[Run, Any], console: Console) -> int:
    """Trains what is missing, shows the tables and writes them as JSON; returns 1 if a run failed."""
    check_at_least_one("--seeds", command.seeds)
    engine = command.engine.settings()
    base = complete(command.run)
    runs = command.table_lines.runs(base, command.seeds)
    if command.settings is not None:
        runs = apply_tuned(runs, read_tuned(command.settings))
    root = open_root(command.out)
    with plain_warnings(console), count_bar("reading data", console) as count:
        check_data(runs, Folders(command.data_dir, root.local / "cache"), count)
    outcomes = run_on_engine(runs, command.out, command.data_dir, engine, console)
    finished = tables([read(o.folder / "record.jsonl") for o in outcomes if o.failure is None])
    print_tables(finished, console, paper=command.paper, protocol=f"--preset {command.preset}")
    name = f"compare-{base.setting}-{base.subject().dataset}.json"
    (root.local / name).write_text(json.dumps(as_json(finished), indent=1))
    root.push_file(name)
    say(console, f"tables in {root}/{name}, one record per run in {root}")
    return report_failures(outcomes, console)


def run_with_progress(runs: Sequence[Run], out: Path, data_dir: Path, workers: int, console: Console) -> list[Outcome]:
    """Trains all unfinished runs in processes of this machine, with a progress bar."""
    return run_on_engine(runs, out, data_dir, EngineOptions(workers=workers).settings(), console)


def run_on_engine(
    runs: Sequence[Run], out: Path, data_dir: Path, engine: EngineSettings, console: Console
) -> list[Outcome]:
    """Trains all unfinished runs with a progress bar, and reports failures at once."""
    with bar(console) as progress:
        task = progress.add_task("runs", total=len(set(runs)))

        def watch(outcome: Outcome) -> None:
            progress.advance(task)
            if outcome.failure is not None:
                say(progress.console, f"failed: {outcome.run.name()}: {outcome.failure.strip().splitlines()[-1]}")

        def note(text: str) -> None:
            say(progress.console, text)

        return run_all(runs, out, data_dir=data_dir, engine=engine, watch=watch, note=note)


def report_failures(outcomes: Sequence[Outcome], console: Console) -> int:
    """Says which runs failed and where the reason is; 1 if any did."""
    failed = [outcome.folder for outcome in outcomes if outcome.failure is not None]
    if failed:
        say(console, f"{len(failed)} of {len(outcomes)} runs failed; failure.txt in their folders says why:")
        say(console, *(f"  {folder}" for folder in failed))
    return 1 if failed else 0
