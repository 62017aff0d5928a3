"""``arml train``: one run."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import torch
import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from arml.cli.names import build
from arml.lab.run import Run, is_done
from arml.lab.trace import Record, read, result
from arml.lab.train import train

Preset = Literal["cpu", "paper"]


def data_folder() -> Path:
    """Where data sets are: the environment variable ARML_DATA, or ``data``."""
    return Path(os.environ.get("ARML_DATA", "data"))


@dataclass(frozen=True)
class Train:
    """Train one network and choose it by its validation error; the test images are looked at once, at the end."""

    run: Annotated[Run, tyro.conf.arg(name="")]
    preset: Preset = "cpu"
    """Defaults of all other options: cpu takes minutes, paper is the exact protocol of the paper."""
    out: Path = Path("runs")
    """Where folders of runs are made."""
    data_dir: Path = field(default_factory=data_folder)
    """Where data sets are; default: the environment variable ARML_DATA, or data."""
    resume: bool = False
    """Go on from the last checkpoint, if there is one; without it an unfinished run starts anew."""
    threads: int = 1
    """Threads of torch: for small networks one is fastest."""


def run_train(command: Train, console: Console) -> int:
    """Trains with a progress bar and says where the record is."""
    folder = command.out / command.run.name()
    if is_done(folder):
        console.print(f"This run is complete; remove {folder} to repeat it.")
        outcome = result(read(folder / "record.jsonl").records) or {}
    else:
        torch.set_num_threads(command.threads)
        outcome = _with_progress(command, folder, console)
    console.print(f"test error {outcome['test_error']:.2f} % (chosen at step {outcome['step']} by its validation error")
    console.print(f"{outcome['validation_error']:.2f} %; at the last step {outcome['test_error_last']:.2f} %)")
    if outcome["weights"]:
        console.print("weights " + _weights(outcome))
    console.print(f"record {folder / 'record.jsonl'}; curves: tensorboard --logdir {folder}")
    return 0


def _with_progress(command: Train, folder: Path, console: Console) -> Record:
    run = command.run
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), TextColumn("{task.fields[seen]}"), console=console) as progress:
        bar = progress.add_task(f"{run.learner} {run.method}", total=run.steps, seen="")
        latest: dict[str, str] = {}

        def watch(record: Record) -> None:
            if "losses" in record:
                latest["loss"], latest["weights"] = f"loss {record['losses']['main']:.3f}", _weights(record)
            elif "test_error" not in record:
                latest["accuracy"] = f"validation accuracy {100 - record['validation_error']:.1f} %"
                if not console.is_terminal:  # a log file shows no bar
                    console.print(f"step {record['step']}  " + "  ".join(latest.values()))
            done = max(record["step"], progress.tasks[0].completed)
            progress.update(bar, completed=done, seen="  ".join(latest.values()))

        parts = build(run, command.data_dir, command.out / "cache")
        return train(run, parts, folder, resume=command.resume, watch=watch)


def _weights(record: Record) -> str:
    return "  ".join(f"{name} {weight:.2f}" for name, weight in record.get("weights", {}).items())
