"""``arml suite``: every method in worlds of which it is known which auxiliary tasks help."""

import json

from rich.console import Console

from arml.cli.compare import report_failures, run_with_progress
from arml.cli.options import SuiteOptions
from arml.cli.progress import plain_warnings, say
from arml.cli.train import check_at_least_one
from arml.lab.build import complete
from arml.lab.build.method_file import load_method
from arml.lab.build.suite import find_worlds
from arml.lab.catalogue import METHODS, choose
from arml.lab.experiments import suite_runs
from arml.lab.run import Run, split_names
from arml.lab.sweep import Outcome
from arml.lab.trace import read
from arml.lab.worlds import WORLDS
from arml.report.data.comparison import comparisons
from arml.report.data.suite_scores import leaderboard, world_results
from arml.report.output.terminal import print_sheets
from arml.report.output.text import markdown
from arml.report.tables.suite_sheets import brief_worlds_sheet, leaderboard_sheet, list_sheet, worlds_sheet


def run_suite(command: SuiteOptions, console: Console) -> int:
    """Trains what is missing, shows the leaderboard and the errors, and writes both; returns 1 if a run failed."""
    if command.list:
        print_sheets([list_sheet([*WORLDS.values()])], console)
        return 0
    check_at_least_one("--seeds", command.seeds)
    with plain_warnings(console):
        runs = _runs(command)
    say(console, f"{len(runs)} runs in {len({run.subject() for run in runs})} worlds. Finished runs are not repeated.")
    outcomes = run_with_progress(runs, command.out, command.data_dir, command.workers, console)
    _show(outcomes, command, console)
    return report_failures(outcomes, console)


def _runs(command: SuiteOptions) -> list[Run]:
    aux, files = split_names(command.aux), [str(file) for file in command.method_file]
    known = find_worlds(command.table, command.folders, command.main, aux, command.out / "cache")
    own = bool(command.table or command.folders)
    of_tier = [name for name, world in known.items() if own or world.tier == command.tier]
    quick = command.quick and not own
    names = split_names(command.worlds) or (suite_runs.QUICK if quick else tuple(of_tier))
    for file in files:
        load_method(file)  # faults show before many runs begin
    made = suite_runs.runs(
        [choose(known, name, "world") for name in names],
        seeds=min(command.seeds, suite_runs.QUICK_SEEDS) if quick else command.seeds,
        methods=[_check_method(name) for name in split_names(command.methods)] or tuple(METHODS),
        method_files=files,
        table=command.table,
        folders=command.folders,
        main=command.main,
        aux=aux,
        **({} if command.steps is None else _short(command.steps)),
    )
    return list(dict.fromkeys(complete(run) for run in made))


def _short(steps: int) -> dict[str, int]:
    return {"steps": steps, "evaluate_every": steps, "record_every": max(1, steps // 10), "checkpoint_every": steps}


def _check_method(name: str) -> str:
    choose(METHODS, name, "method")
    return name


def _show(outcomes: list[Outcome], command: SuiteOptions, console: Console) -> None:
    results = world_results(comparisons([read(o.folder / "record.jsonl") for o in outcomes if o.failure is None]))
    if not results:
        say(console, "No world has finished runs of the main task alone and of uniform weights: there are no scores.")
        return
    scores = leaderboard(results)
    ranking = leaderboard_sheet(scores, len(results))
    print_sheets([ranking, brief_worlds_sheet(results)], console)
    (command.out / "leaderboard.json").write_text(json.dumps([one._asdict() for one in scores], indent=1))
    path = command.out / "leaderboard.md"
    path.write_text(markdown([ranking, worlds_sheet(results)]))
    say(console, f"scores, and errors of every method, in {path}; figure: arml report {command.out}")
