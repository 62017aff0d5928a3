"""``arml compare``: learners and methods over seeds and numbers of labels."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from arml.cli.options import Compare, EngineOptions
from arml.cli.progress import LogLines, bar, count_bar, plain_warnings, say
from arml.cli.train import MOST, check_at_least_one
from arml.lab.build import Folders, complete
from arml.lab.build.settings import check_data
from arml.lab.divergence import DivergedError
from arml.lab.engines import EngineSettings, Local, OnRay
from arml.lab.experiments.leave_one_out import leave_one_out_runs
from arml.lab.hardware import choose_device
from arml.lab.run import Run, fit_file_name
from arml.lab.run_folder import write_whole
from arml.lab.runs_root import RunsRoot, open_root
from arml.lab.sweep import Outcome, run_all
from arml.lab.trace import Recorded, read
from arml.lab.tuned import apply_tuned, read_tuned
from arml.report.contents import make_answers
from arml.report.data.comparison import comparisons
from arml.report.output.terminal import print_answers, print_tables
from arml.report.tables.rows import as_json, tables


def choose_engine(options: EngineOptions) -> EngineSettings:
    """The engine that the options describe."""
    check_at_least_one("--workers", options.workers)
    if options.cpus_per_run < 0 or options.gpus_per_run < 0 or options.cpus_per_run + options.gpus_per_run == 0:
        raise ValueError(
            "A run needs a part of a core or of a GPU. "
            f"Got --cpus-per-run {options.cpus_per_run:g} and --gpus-per-run {options.gpus_per_run:g}."
        )
    for option, value in (("--cpus-per-run", options.cpus_per_run), ("--gpus-per-run", options.gpus_per_run)):
        if not value <= MOST:
            raise ValueError(f"{option} should be at most {MOST}. Got {value:g}.")
    if options.engine == "ray":
        return OnRay(options.address, options.cpus_per_run, options.gpus_per_run)
    return Local(options.workers)


def run_compare(command: Compare[Run, Any], console: Console) -> int:
    """Trains what is missing, shows the tables and writes them as JSON; returns 1 if a run failed."""
    check_at_least_one("--seeds", command.seeds)
    engine, device = choose_engine(command.engine), command.engine.device
    choose_device(device)  # refused before anything is read
    base = complete(command.run)
    runs = command.table_lines.runs(base, command.seeds)
    if command.settings is not None:
        runs = apply_tuned(runs, read_tuned(command.settings))
    root = open_root(command.out)
    with plain_warnings(console), count_bar("reading data", console) as count:
        check_data(runs, Folders(command.data_dir, root.local / "cache"), count)
    outcomes = run_on_engine(runs, command.out, command.data_dir, engine, console, device)
    if command.leave_one_out:
        further = [
            run for run in leave_one_out_runs([*recorded_runs(outcomes)]) if run not in {one.run for one in outcomes}
        ]
        if further:
            say(console, "Now without one auxiliary task at a time (--no-leave-one-out skips this):")
            outcomes += run_on_engine(further, command.out, command.data_dir, engine, console, device)
    _show(command, base, root, outcomes, console)
    return report_failures(outcomes, console)


def _show(command: Compare[Run, Any], base: Run, root: RunsRoot, outcomes: Sequence[Outcome], console: Console) -> None:
    """The tables, where they are, and the answer at the end, where it is seen."""
    recorded = [*recorded_runs(outcomes)]
    finished = tables(recorded, [outcome.run for outcome in outcomes if outcome.failure is not None])
    print_tables(finished, console, paper=command.paper, protocol=f"--preset {command.preset}")
    name = f"{fit_file_name(f'compare-{base.setting}-{base.subject().dataset}')}.json"
    write_whole(root.local / name, json.dumps(as_json(finished), indent=1).encode())
    root.push_file(name)
    say(console, f"tables in {root}/{name}, one record per run in {root}; a page: arml report {root}")
    say(console, "")
    print_answers([answer.text for answer in make_answers(comparisons(recorded))], console)


def run_with_progress(runs: Sequence[Run], out: Path, data_dir: Path, workers: int, console: Console) -> list[Outcome]:
    """Trains all unfinished runs in processes of this machine, with a progress bar."""
    return run_on_engine(runs, out, data_dir, choose_engine(EngineOptions(workers=workers)), console)


def run_on_engine(
    runs: Sequence[Run], out: Path, data_dir: Path, engine: EngineSettings, console: Console, device: str = "auto"
) -> list[Outcome]:
    """Trains all unfinished runs with a progress bar, and reports failures at once."""
    with bar(console, slow=True) as progress:
        task, lines = progress.add_task("runs", total=len(set(runs))), LogLines(console)

        def watch(outcome: Outcome) -> None:
            progress.advance(task)
            lines.tell(progress.tasks[0])
            if outcome.failure is not None:
                say(progress.console, f"failed: {outcome.run.name()}: {outcome.failure.strip().splitlines()[-1]}")

        def note(text: str) -> None:
            say(progress.console, text)

        return run_all(runs, out, data_dir=data_dir, engine=engine, device=device, watch=watch, note=note)


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
