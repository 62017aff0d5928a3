"""``arml demo``: see it work."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from arml.cli.compare import report_failures, run_with_progress
from arml.cli.progress import say
from arml.cli.report import ReportRuns, run_report
from arml.cli.train import at_least_one
from arml.lab.experiments import demo_runs


@dataclass(frozen=True)
class Demo:
    """Three small real experiments on embedded data, every way to weigh, a verdict on each auxiliary task."""

    seeds: int = 3
    """Runs of each line, with seeds 0, 1, ...; all lines have the same splits."""
    workers: int = 2
    """Runs side by side, each with one thread."""
    out: Path = Path("runs/demo")
    """Where folders of runs and the report are made. Finished runs found there are not repeated."""


def run_demo(command: Demo, console: Console) -> int:
    """Runs what is missing, shows tables and verdict, says where the report is; 1 if a run failed."""
    at_least_one("--seeds", command.seeds)
    runs = demo_runs.runs(command.seeds)
    say(console, "Three experiments on real data that ship inside packages:")
    say(console, "  digits    50 labels; rotations and exemplars of unlabelled digits as auxiliary tasks")
    say(console, "  yeast     one function of genes with 50 labels; 13 other functions as auxiliary tasks")
    say(console, "  digits    20 labels in one domain; four other domains as auxiliary tasks, one of which misleads")
    say(console, f"{len(runs)} runs, two to four minutes on two cores. A second time, finished ones are not repeated.")
    outcomes = run_with_progress(runs, command.out, Path("data"), command.workers, console)
    finished = tuple(outcome.folder for outcome in outcomes if outcome.failure is None)
    if finished:
        run_report(ReportRuns(finished, out=command.out / "report"), console)
    return report_failures(outcomes, console)
