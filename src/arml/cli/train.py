"""``arml train``: one run."""

from functools import partial
from typing import Any

import torch
from rich.console import Console

from arml.cli.options import Train
from arml.cli.progress import bar, count_bar, plain_warnings, say
from arml.lab.build import Folders, build, complete
from arml.lab.fit import fit, is_simple
from arml.lab.hardware import choose_device
from arml.lab.launch import hold_folder
from arml.lab.memory import keep_freed_memory
from arml.lab.processes import join_processes
from arml.lab.run import Run
from arml.lab.run_folder import is_done
from arml.lab.runs_root import RunsRoot, open_root
from arml.lab.stopping import stop_on_signals
from arml.lab.trace import Record, read, result
from arml.lab.train import Parts, train

MOST = 10_000
"""Seeds, processes, threads and repetitions that anybody can mean."""


def check_at_least_one(option: str, value: int) -> None:
    """Raises an error for counts below 1, and for those that no machine could serve."""
    if not 1 <= value <= MOST:
        limit = "least 1" if value < 1 else f"most {MOST}"
        raise ValueError(f"{option} should be at {limit}. Got {value}.")


def run_train(command: Train[Run], console: Console) -> int:
    """Trains with a progress bar and says where the record is."""
    check_at_least_one("--threads", command.threads)
    device = choose_device(command.device)
    with join_processes(device) as part:
        return _run_in_process(command, device, console if part.rank == 0 else Console(quiet=True))


def _run_in_process(command: Train[Run], device: torch.device, console: Console) -> int:
    run = complete(command.run)
    root = open_root(command.out)
    with hold_folder(root, run.name(), resume=command.resume) as folder:
        if is_done(folder):
            say(console, f"This run is complete; remove {folder} to repeat it.")
            outcome = result(read(folder / "record.jsonl").records) or {}
        else:
            torch.set_num_threads(command.threads)
            keep_freed_memory()
            outcome = _train_or_fit(command, run, root, device, console)
    say(console, f"test error {outcome['test_error']:.2f} % (last step {outcome['test_error_last']:.2f} %)")
    validation = f"validation error {outcome['validation_error']:.2f} %; " if "validation_error" in outcome else ""
    say(console, f"step {outcome['step']}, {validation}{run.protocol()}")
    for name, value in _other_metrics(outcome).items():
        say(console, f"test {name} {value:.2f}")
    if outcome["weights"]:
        say(console, "weights " + _format_weights(outcome))
    say(console, f"record {folder / 'record.jsonl'}; curves: tensorboard --logdir {folder}")
    return 0


def _train_or_fit(command: Train[Run], run: Run, root: RunsRoot, device: torch.device, console: Console) -> Record:
    folders = Folders(command.data_dir, root.local / "cache")
    with plain_warnings(console), count_bar("reading data", console) as count:
        if is_simple(run):
            return fit(run, folders, root.local / run.name())
        parts = build(run, folders, count, device=device)
    return _train_with_progress(run, parts, root, console, resume=command.resume)


def _train_with_progress(run: Run, parts: Parts[Any], root: RunsRoot, console: Console, *, resume: bool) -> Record:
    with plain_warnings(console), bar(console, status=True) as progress, stop_on_signals() as stop:
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

        name = run.name()
        push = partial(root.push, name)
        return train(run, parts, root.local / name, resume=resume, watch=watch, stop=stop, after_checkpoint=push)


def _other_metrics(outcome: Record) -> dict[str, float]:
    """Metrics on the test examples other than the error."""
    named = {key.removeprefix("test_").replace("_", " "): value for key, value in outcome.items() if key[:5] == "test_"}
    return {name: value for name, value in named.items() if name not in ("error", "error last")}


def _format_weights(record: Record) -> str:
    """All weights if they are few, otherwise the three largest."""
    weights = record.get("weights", {})
    shown = sorted(weights, key=lambda name: -weights[name])[:3] if len(weights) > 4 else list(weights)
    return "  ".join(f"{name} {weights[name]:.2f}" for name in shown) + (" ..." if len(shown) < len(weights) else "")
