"""``arml demo``: see it work."""

from pathlib import Path

from rich.console import Console

from arml.cli.compare import report_failures, run_with_progress
from arml.cli.options import Demo, ReportRuns
from arml.cli.progress import say
from arml.cli.report import run_report
from arml.cli.train import check_at_least_one
from arml.lab.experiments import demo_runs


def run_demo(command: Demo, console: Console) -> int:
    """Trains what is missing, shows the answer, and says where the page is; returns 1 if a run failed."""
    check_at_least_one("--seeds", command.seeds)
    runs = demo_runs.runs(command.seeds)
    say(console, "The task: recognise handwritten digits from 20 labels. The help: four other sources of digits;")
    say(console, "one of them, misleading, has wrong labels, and nobody says so. Which sources help, and how much?")
    say(console, f"{len(runs)} small runs, two to three minutes on two cores. Finished runs are not repeated.")
    outcomes = run_with_progress(runs, command.out, Path("data"), command.workers, console)
    finished = tuple(outcome.folder for outcome in outcomes if outcome.failure is None)
    if finished:
        say(console, "")
        run_report(ReportRuns(finished, out=command.out / "report", figures=4, tables=False), console)
    return report_failures(outcomes, console)
