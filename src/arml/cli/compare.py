"""``arml compare``: learners and methods over seeds and numbers of labels."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from arml.cli.options import Compare
from arml.cli.progress import bar, count_bar, plain_warnings, say
from arml.cli.train import check_at_least_one
from arml.lab.build import Folders, complete
from arml.lab.build.settings import check_data
from arml.lab.experiments.leave_one_out import leave_one_out_runs
from arml.lab.hardware import choose_device
from arml.lab.run import Run
from arml.lab.sweep import Outcome, run_all
from arml.lab.trace import Recorded, read
from arml.report.contents import make_answers
from arml.report.data.comparison import comparisons
from arml.report.output.terminal import print_answers, print_tables
from arml.report.tables.rows import as_json, tables


def run_compare(command: Compare[Run, Any], console: Console) -> int:
    """Trains what is missing, shows the tables and writes them as JSON; returns 1 if a run failed."""
    check_at_least_one("--seeds", command.seeds)
    choose_device(command.device)  # refused before anything is read
    base = complete(command.run)
    runs = command.table_lines.runs(base, command.seeds)
    with plain_warnings(console), count_bar("reading data", console) as count:
        check_data(runs, Folders(command.data_dir, command.out / "cache"), count)
    outcomes = run_with_progress(runs, command.out, command.data_dir, command.workers, console, command.device)
    if command.leave_one_out:
        further = [run for run in leave_one_out_runs(_read(outcomes)) if run not in {one.run for one in outcomes}]
        if further:
            say(console, "Now without one auxiliary task at a time (--no-leave-one-out skips this):")
            outcomes += run_with_progress(
                further, command.out, command.data_dir, command.workers, console, command.device
            )
    _show(command, base, _read(outcomes), console)
    return report_failures(outcomes, console)


def _read(outcomes: Sequence[Outcome]) -> list[Recorded]:
    return [read(outcome.folder / "record.jsonl") for outcome in outcomes if outcome.failure is None]


def _show(command: Compare[Run, Any], base: Run, recorded: Sequence[Recorded], console: Console) -> None:
    """The tables, where they are, and the answer at the end, where it is seen."""
    finished = tables(recorded)
    print_tables(finished, console, paper=command.paper, protocol=f"--preset {command.preset}")
    path = command.out / f"compare-{base.setting}-{base.subject().dataset}.json"
    path.write_text(json.dumps(as_json(finished), indent=1))
    say(console, f"tables in {path}, one record per run in {command.out}; a page: arml report {command.out}")
    say(console, "")
    print_answers([answer.text for answer in make_answers(comparisons(recorded))], console)


def run_with_progress(
    runs: Sequence[Run], out: Path, data_dir: Path, workers: int, console: Console, device: str = "auto"
) -> list[Outcome]:
    """Trains all unfinished runs with a progress bar, and reports failures at once."""
    check_at_least_one("--workers", workers)
    with bar(console) as progress:
        task = progress.add_task("runs", total=len(runs))

        def watch(outcome: Outcome) -> None:
            progress.advance(task)
            if outcome.failure is not None:
                say(progress.console, f"failed: {outcome.run.name()}: {outcome.failure.strip().splitlines()[-1]}")

        return run_all(runs, out, data_dir=data_dir, workers=workers, device=device, watch=watch)


def report_failures(outcomes: Sequence[Outcome], console: Console) -> int:
    """Says which runs failed and where the reason is; 1 if any did."""
    failed = [outcome.folder for outcome in outcomes if outcome.failure is not None]
    if failed:
        say(console, f"{len(failed)} of {len(outcomes)} runs failed; failure.txt in their folders says why:")
        say(console, *(f"  {folder}" for folder in failed))
    return 1 if failed else 0
