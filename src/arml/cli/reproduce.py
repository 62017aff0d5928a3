"""``arml reproduce``: the paper's tables and figures by name."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console

from arml.cli.compare import choose_engine, recorded_runs, report_failures, run_on_engine
from arml.cli.options import Reproduce
from arml.cli.progress import count_bar, plain_warnings, say
from arml.cli.report import defaults
from arml.cli.table_study import show_study
from arml.cli.train import check_at_least_one
from arml.lab.build import Folders, complete
from arml.lab.build.settings import check_data
from arml.lab.catalogue import choose
from arml.lab.experiments.artefact import Artefact, Plan, make_plan
from arml.lab.experiments.paper_artefacts import ARTEFACTS
from arml.lab.experiments.table_study import table_study, text_study
from arml.lab.hardware import choose_device
from arml.lab.run import Run
from arml.lab.run_folder import is_done
from arml.lab.runs_root import open_root
from arml.lab.sweep import Outcome
from arml.report.contents import Report, make_report
from arml.report.data.records import Collected
from arml.report.output.results_page import Origin, write_results
from arml.report.output.terminal import print_answers, print_sheets

TABLES, TEXT = "tables", "text"
"""Studies beyond the paper, of tables that are written below --out first."""


def run_reproduce(command: Reproduce, console: Console) -> int:
    """Says what will be trained, trains what is missing, shows the tables; returns 1 if a run failed."""
    if command.list or not command.artefact:
        return _list(console)
    artefact = find_artefact(command)
    seeds = artefact.seeds[command.scale] if command.seeds is None else command.seeds
    check_at_least_one("--seeds", seeds)
    engine, device = choose_engine(command.engine), command.engine.device
    choose_device(device)  # refused before anything is read
    timed = artefact.runs(command.scale, seeds).items()
    runs = {complete(_adjust(run, command)): seconds for run, seconds in timed}
    root = open_root(command.out)
    root.pull_finished()
    plan = make_plan(runs, lambda run: is_done(root.local / run.name()), artefact.differences[command.scale])
    say(console, *_describe(artefact, plan, command))
    with plain_warnings(console), count_bar("reading data", console) as count:
        check_data(plan.runs, Folders(command.data_dir, root.local / "cache"), count)
    began = time.monotonic()
    outcomes = run_on_engine(plan.runs, command.out, command.data_dir, engine, console, device)
    origin = Origin(_words(command, seeds), plan.differences, len(plan.unfinished), time.monotonic() - began)
    if command.artefact == TABLES:
        show_study(artefact.title, outcomes, origin, command.results or command.out / "results", console)
    else:
        _show(artefact, outcomes, origin, command, console)
    return report_failures(outcomes, console)


def find_artefact(command: Reproduce) -> Artefact:
    """The artefact with this name; studies of tables are made for the folders that were given."""
    studies: dict[str, Callable[[Path], Artefact]] = {TABLES: partial(table_study, command.tables), TEXT: text_study}
    choose({**ARTEFACTS, **studies}, command.artefact, "artefact")  # refuses a name that is unknown
    study = studies.get(command.artefact)
    found = study(open_root(command.out).local) if study else ARTEFACTS[command.artefact]
    if command.scale not in found.parts:
        raise ValueError(f"{command.artefact} has no --scale {command.scale}, only {', '.join(found.parts)}.")
    return found


def _list(console: Console) -> int:
    for name, artefact in ARTEFACTS.items():
        counts = ", ".join(f"{scale} {len(artefact.runs(scale, n))} runs" for scale, n in artefact.seeds.items())
        say(console, f"{name:<11} {artefact.title} ({counts})", f"{'':<11} {artefact.question}")
    say(console, f"{TABLES:<11} Tables: every target as the main one in turn; see --tables")
    say(console, f"{TEXT:<11} Text: parts of SciPy, told by descriptions of their functions")
    return 0


def _adjust(run: Run, command: Reproduce) -> Run:
    """The run with the weights and the number of steps that were asked for."""
    if command.weights and "weights" in vars(run):
        run = replace(run, weights=command.weights)  # type: ignore[call-arg]
    if command.steps is None:
        return run
    steps = command.steps
    return replace(run, steps=steps, evaluate_every=steps, record_every=steps, checkpoint_every=steps)


def _words(command: Reproduce, seeds: int) -> str:
    shortened = "" if command.steps is None else f" --steps {command.steps}"
    return f"arml reproduce {command.artefact} --scale {command.scale} --seeds {seeds}{shortened}"


def _describe(artefact: Artefact, plan: Plan, command: Reproduce) -> list[str]:
    """What will be done, how long it takes, and what differs from the paper."""
    finished = len(plan.runs) - len(plan.unfinished)
    seconds = plan.seconds / command.engine.workers
    if command.steps is not None or plan.unmeasured:
        duration = "not measured at this size: the bar shows what is left after the first runs"
    else:
        processes = "1 process" if command.engine.workers == 1 else f"{command.engine.workers} processes"
        duration = f"about {format_duration(seconds)} with {processes} on idle cores"
    return [
        artefact.title,
        artefact.question,
        f"runs: {len(plan.runs)}, of which {finished} are finished in {command.out}; {len(plan.unfinished)} to train",
        *(f"  {line}" for line in plan.lines),
        f"expected duration: {duration}",
        f"differences from the paper at --scale {command.scale}:",
        *(f"  - {difference}" for difference in plan.differences),
        "",
    ]


def format_duration(seconds: float) -> str:
    """About two digits.

    >>> format_duration(42), format_duration(1500), format_duration(9000)
    ('42 seconds', '25 minutes', '2.5 hours')
    """
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def _show(
    artefact: Artefact, outcomes: Sequence[Outcome], origin: Origin, command: Reproduce, console: Console
) -> None:
    """The tables beside the paper's figures, the answer at the end, and the page if one is asked for."""
    report = _report(outcomes)
    written = []
    if command.results is not None:  # first: whoever reads the output may stop reading
        name = f"{command.artefact}-{command.scale}"
        written.append(write_results(report, command.results, name, f"{artefact.title}. {artefact.question}", origin))
    print_sheets([sheet for section in report.sections for sheet in section.sheets if sheet.brief], console)
    say(console, *(sentence for section in report.sections for sentence in section.sentences), "")
    print_answers([answer.text for answer in report.answers], console)
    say(console, *(f"results in {path}" for path in written))
    say(console, f"one record per run in {command.out}; a page: arml report {command.out} --paper")


def _report(outcomes: Sequence[Outcome]) -> Report:
    failed = {one.run: one.failure.strip().splitlines()[-1] for one in outcomes if one.failure is not None}
    return make_report(Collected([*recorded_runs(outcomes)], failed, []), paper=True, defaults=defaults)
