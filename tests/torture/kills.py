"""Commands that are killed, interrupted or started twice: every run ends in the record of an undisturbed one."""

import random
import shutil
import signal
import time
from pathlib import Path

from torture.commands import Process, run

SHORT = ["--steps", "40", "--evaluate-every", "10", "--record-every", "5", "--checkpoint-every", "4"]
TRAIN = {
    "ssl": ["train", "ssl", "--batch-labelled", "8", "--batch-unlabelled", "8", "--network", "small-4"],
    "ssl two stages": ["train", "ssl", "--method", "arml_full", "--batch-unlabelled", "8", "--network", "small-4"],
    "ssl teacher": ["train", "ssl", "--learner", "mean_teacher", "--batch-unlabelled", "8", "--network", "small-4"],
    "mlc": ["train", "mlc", "--network", "mlp-16", "--dropout", "0.2"],
    "mlc merged": ["train", "mlc", "--learner", "forkmerge", "--network", "mlp-16"],
    "mlc gradnorm": ["train", "mlc", "--method", "gradnorm", "--network", "mlp-16"],
    "dg": ["train", "dg", "--network", "small-4"],
    "dg fada": ["train", "dg", "--learner", "fada", "--network", "small-4"],
}
COMPARE = ["compare", "mlc", "--network", "mlp-8", "--seeds", "2", "--methods", "uniform", "arml", *SHORT]
GRACE = 30.0
"""Seconds in which a command has to stop, and its workers after it. A busy machine has as many as the undisturbed
command took, since a worker that is still importing packages cannot notice anything."""


def records(folder: Path) -> dict[str, bytes]:
    """The records below ``folder``, by the name of the run."""
    return {path.parent.name: path.read_bytes() for path in sorted(folder.glob("*/record.jsonl"))}


def reference(words: list[str], place: Path, name: str) -> tuple[dict[str, bytes], float]:
    """The records of an undisturbed command, and how many seconds it took; it runs once."""
    folder = place.parent / "reference" / name.replace(" ", "-")
    took = folder.with_suffix(".seconds")
    if not took.exists():
        shutil.rmtree(folder, ignore_errors=True)
        answer = run([*words, "--out", str(folder)], place / "log")
        if answer.fault(0):
            raise RuntimeError(f"{name}: the undisturbed command failed: {answer.fault(0)}")
        took.write_text(f"{answer.seconds}")
    return records(folder), float(took.read_text())


def kill_train(rng: random.Random, place: Path) -> str:
    """Kills a run one to four times at any moment, sometimes starts it afresh in between, and completes it."""
    name = rng.choice(list(TRAIN))
    words = [*TRAIN[name], *SHORT]
    wanted, seconds = reference(words, place, name)
    out = place / "runs"
    for _ in range(rng.randint(1, 4)):
        fresh = rng.random() < 0.3
        process = Process([*words, "--out", str(out), *([] if fresh else ["--resume"])], place / "log")
        answer = process.wait(rng.uniform(0, 1.1 * seconds))
        process.end()
        if answer is not None and answer.fault(0):
            return f"{name}: {answer.fault(0)}"
        if answer is None:
            process.wait(60)
    return _complete([*words, "--out", str(out), "--resume"], out, wanted, place, name)


def signal_train(rng: random.Random, place: Path) -> str:
    """Asks a run to stop by Ctrl-C or SIGTERM: it stops in time, with the right code, and goes on exactly."""
    name, number = rng.choice(list(TRAIN)), rng.choice([signal.SIGINT, signal.SIGTERM])
    words = [*TRAIN[name], *SHORT]
    wanted, seconds = reference(words, place, name)
    out = place / "runs"
    process = Process([*words, "--out", str(out)], place / "log")
    answer = process.wait(rng.uniform(0.1, 0.9) * seconds)
    if answer is None:
        process.send(number)
        answer = process.wait(max(GRACE, seconds))
    process.end()
    fault = "does not stop" if answer is None else answer.fault(0, 128 + number)
    return (
        f"{name}, {number.name}: {fault}"
        if fault
        else _complete([*words, "--out", str(out), "--resume"], out, wanted, place, name)
    )


def stop_compare(rng: random.Random, place: Path) -> str:
    """Kills, interrupts or terminates a comparison; its workers end, too, and the next one completes it."""
    number = rng.choice([signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
    wanted, seconds = reference(COMPARE, place, "compare")
    out = place / "runs"
    words = [*COMPARE, "--out", str(out)]
    process = Process(words, place / "log")
    answer = process.wait(rng.uniform(0, 1.1) * seconds)
    if answer is None:
        process.send(number)
        answer = process.wait(max(GRACE, seconds))
        fault = "does not stop" if answer is None else answer.fault(0, -number, 128 + number)
        fault = fault or _wait_for_workers(process, max(GRACE, seconds))
        process.end()
        if fault:
            return f"compare, {number.name}: {fault}"
    return _complete(words, out, wanted, place, "compare")


def run_twice(rng: random.Random, place: Path) -> str:
    """Starts the same command twice, at almost the same time: nobody's record is harmed."""
    name = rng.choice(["compare", *TRAIN])
    words = COMPARE if name == "compare" else [*TRAIN[name], *SHORT]
    wanted, seconds = reference(words, place, name)
    out, words = place / "runs", words if name == "compare" else [*words, "--resume"]
    first = Process([*words, "--out", str(out)], place / "log")
    time.sleep(rng.uniform(0, 0.5) * seconds)
    second = Process([*words, "--out", str(out)], place / "log-of-second")
    answers = [process.wait(60 + 10 * seconds) for process in (first, second)]
    for process in (first, second):
        process.end()
    faults = ["hangs" if answer is None else answer.fault(0, 1) for answer in answers]
    if any(faults):
        return f"{name}, two at once: {' / '.join(filter(None, faults))}"
    return _complete([*words, "--out", str(out)], out, wanted, place, name)


def _complete(words: list[str], out: Path, wanted: dict[str, bytes], place: Path, name: str) -> str:
    answer = run(words, place / "log")
    if answer.fault(0):
        return f"{name}: not completed: {answer.fault(0)}"
    found = records(out)
    if found == wanted:
        return ""
    lost = [run for run in wanted if run not in found]
    return f"{name}: {f'lost {lost}' if lost else 'another record than that of an undisturbed run'}"


def _wait_for_workers(process: Process, seconds: float) -> str:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not process.family():
            return ""
        time.sleep(0.05)
    return f"{len(process.family())} workers go on after {seconds:.0f} seconds"
