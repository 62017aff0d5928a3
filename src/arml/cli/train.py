"""``arml train``: one run."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

import torch
import tyro
from rich.console import Console

from arml.cli.progress import bar, count_bar, plain_warnings, say
from arml.lab.build import Folders, build, complete
from arml.lab.environment import data_folder
from arml.lab.fit import fit, is_simple
from arml.lab.run import Run, is_done
from arml.lab.trace import Record, read, result
from arml.lab.train import Parts, train

Preset = Literal["cpu", "paper"]
R = TypeVar("R", bound=Run)


@dataclass(frozen=True)
class Train(Generic[R]):
    """Train one network. Validation examples choose it; test examples are used once, at the end."""

    run: Annotated[R, tyro.conf.arg(name="")]
    preset: Preset = "cpu"
    """Sets the defaults of all other options: cpu takes two minutes per run at most, paper is the
    paper's exact protocol."""
    out: Path = Path("runs")
    """Where to make the folder of the run."""
    data_dir: Path = field(default_factory=data_folder)
    """Where data sets are. Default: the environment variable ARML_DATA, or data."""
    resume: bool = False
    """Continue from the last checkpoint, if there is one. Without it an unfinished run starts again."""
    threads: int = 1
    """Number of torch threads. One is fastest for small networks."""


def check_at_least_one(option: str, value: int) -> None:
    """Raises an error for counts below 1."""
    if value < 1:
        raise ValueError(f"{option} should be at least 1. Got {value}.")


def run_train(command: Train[Run], console: Console) -> int:
    """Trains with a progress bar and says where the record is."""
    check_at_least_one("--threads", command.threads)
    run = complete(command.run)
    folder = command.out / run.name()
    if is_done(folder):
        say(console, f"This run is complete; remove {folder} to repeat it.")
        outcome = result(read(folder / "record.jsonl").records) or {}
    else:
        torch.set_num_threads(command.threads)
        outcome = _train_or_fit(command, run, folder, console)
    say(console, f"test error {outcome['test_error']:.2f} % (last step {outcome['test_error_last']:.2f} %)")
    validation = f"validation error {outcome['validation_error']:.2f} %; " if "validation_error" in outcome else ""
    say(console, f"step {outcome['step']}, {validation}{run.protocol()}")
    for name, value in _other_metrics(outcome).items():
        say(console, f"test {name} {value:.2f}")
    if outcome["weights"]:
        say(console, "weights " + _format_weights(outcome))
    say(console, f"record {folder / 'record.jsonl'}; curves: tensorboard --logdir {folder}")
    return 0


def _train_or_fit(command: Train[Run], run: Run, folder: Path, console: Console) -> Record:
    folders = Folders(command.data_dir, command.out / "cache")
    with plain_warnings(console), count_bar("reading data", console) as count:
        if is_simple(run):
            return fit(run, folders, folder)
        parts = build(run, folders, count)
    return _train_with_progress(run, parts, folder, console, resume=command.resume)


def _train_with_progress(run: Run, parts: Parts[Any], folder: Path, console: Console, *, resume: bool) -> Record:
    with bar(console, status=True) as progress:
        task = progress.add_task(" ".join(word for word in run.line() if word), total=run.steps, status="")
        latest: dict[str, str] = {}

        def watch(record: Record) -> None:
            if "losses" in record:
                loss = record["losses"].get("main")  # a batch may have no main label
                latest["loss"], latest["weights"] = (
                    f"loss {loss:.3f}" if loss is not None else "",
                    _format_weights(record),
                )
            elif "test_error" not in record:
                if "validation_error" in record:
                    latest["error"] = f"validation error {record['validation_error']:.1f} %"
                if not console.is_terminal:  # a log file shows no bar
                    say(console, f"step {record['step']}  " + "  ".join(latest.values()))
            done = max(record["step"], progress.tasks[0].completed)
            progress.update(task, completed=done, status="  ".join(latest.values()))

        return train(run, parts, folder, resume=resume, watch=watch)


def _other_metrics(outcome: Record) -> dict[str, float]:
    """Metrics on the test examples other than the error."""
    named = {key.removeprefix("test_").replace("_", " "): value for key, value in outcome.items() if key[:5] == "test_"}
    return {name: value for name, value in named.items() if name not in ("error", "error last")}


def _format_weights(record: Record) -> str:
    """All weights if they are few, otherwise the three largest."""
    weights = record.get("weights", {})
    shown = sorted(weights, key=lambda name: -weights[name])[:3] if len(weights) > 4 else list(weights)
    return "  ".join(f"{name} {weights[name]:.2f}" for name in shown) + (" ..." if len(shown) < len(weights) else "")
