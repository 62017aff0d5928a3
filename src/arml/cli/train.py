"""``arml train``: one run."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

import torch
import tyro
from rich.console import Console

from arml.cli.progress import bar, counting, remarks, say
from arml.lab.build import Folders, build, complete
from arml.lab.environment import data_folder
from arml.lab.run import Run, is_done
from arml.lab.trace import Record, read, result
from arml.lab.train import Parts, train

Preset = Literal["cpu", "paper"]
R = TypeVar("R", bound=Run)


@dataclass(frozen=True)
class Train(Generic[R]):
    """Train one network and choose it on validation examples; the test examples are looked at once, at the end."""

    run: Annotated[R, tyro.conf.arg(name="")]
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


def at_least_one(option: str, value: int) -> None:
    """An error for counts below 1."""
    if value < 1:
        raise ValueError(f"{option} should be at least 1. Got {value}.")


def run_train(command: Train[Run], console: Console) -> int:
    """Trains with a progress bar and says where the record is."""
    at_least_one("--threads", command.threads)
    run = complete(command.run)
    folder = command.out / run.name()
    if is_done(folder):
        say(console, f"This run is complete; remove {folder} to repeat it.")
        outcome = result(read(folder / "record.jsonl").records) or {}
    else:
        torch.set_num_threads(command.threads)
        with remarks(console), counting("reading data", console) as count:
            parts = build(run, Folders(command.data_dir, command.out / "cache"), count)
        outcome = _train_with_progress(run, parts, folder, console, resume=command.resume)
    say(console, f"test error {outcome['test_error']:.2f} % (last step {outcome['test_error_last']:.2f} %)")
    say(console, f"step {outcome['step']}, validation error {outcome['validation_error']:.2f} %; {run.protocol()}")
    for name, value in _further(outcome).items():
        say(console, f"test {name} {value:.2f}")
    if outcome["weights"]:
        say(console, "weights " + _weights(outcome))
    say(console, f"record {folder / 'record.jsonl'}; curves: tensorboard --logdir {folder}")
    return 0


def _train_with_progress(run: Run, parts: Parts[Any], folder: Path, console: Console, *, resume: bool) -> Record:
    with bar(console, seen=True) as progress:
        task = progress.add_task(" ".join(word for word in run.line() if word), total=run.steps, seen="")
        latest: dict[str, str] = {}

        def watch(record: Record) -> None:
            if "losses" in record:
                loss = record["losses"].get("main")  # a batch may have no main label
                latest["loss"], latest["weights"] = f"loss {loss:.3f}" if loss is not None else "", _weights(record)
            elif "test_error" not in record:
                latest["error"] = f"validation error {record['validation_error']:.1f} %"
                if not console.is_terminal:  # a log file shows no bar
                    say(console, f"step {record['step']}  " + "  ".join(latest.values()))
            done = max(record["step"], progress.tasks[0].completed)
            progress.update(task, completed=done, seen="  ".join(latest.values()))

        return train(run, parts, folder, resume=resume, watch=watch)


def _further(outcome: Record) -> dict[str, float]:
    """What was found on the test examples besides the error."""
    named = {key.removeprefix("test_").replace("_", " "): value for key, value in outcome.items() if key[:5] == "test_"}
    return {name: value for name, value in named.items() if name not in ("error", "error last")}


def _weights(record: Record) -> str:
    """All weights if they are few, else the three largest."""
    weights = record.get("weights", {})
    shown = sorted(weights, key=lambda name: -weights[name])[:3] if len(weights) > 4 else list(weights)
    return "  ".join(f"{name} {weights[name]:.2f}" for name in shown) + (" ..." if len(shown) < len(weights) else "")
