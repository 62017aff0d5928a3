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
    """Trains what is missing, shows tables and verdict, and says where the report is; returns 1 if a run failed."""
    check_at_least_one("--seeds", command.seeds)
    runs = demo_runs.runs(command.seeds)
    say(console, "Three experiments on real data that ship inside Python packages:")
    say(console, "  digits    50 labels; rotations and exemplars of unlabelled digits as auxiliary tasks")
    say(console, "  yeast     50 labels of one gene function; 13 other functions as auxiliary tasks")
    say(console, "  digits    20 labels in one domain; four other domains as auxiliary tasks, one of them misleading")
    say(console, f"{len(runs)} runs, two to four minutes on two cores. Finished runs are not repeated.")
    outcomes = run_with_progress(runs, command.out, Path("data"), command.workers, console)
    finished = tuple(outcome.folder for outcome in outcomes if outcome.failure is None)
    if finished:
        run_report(ReportRuns(finished, out=command.out / "report"), console)
    return report_failures(outcomes, console)
