"""Disks that are full, by a limit on the size of files: one sentence, and nothing is lost when there is room again."""

import math
import random
from pathlib import Path

from torture.commands import run
from torture.kills import COMPARE, SHORT, TRAIN, records, reference


def fill_disk(rng: random.Random, place: Path) -> str:
    """Runs a command that cannot write more than a few bytes to a file, then again without the limit."""
    name = rng.choice(["compare", *TRAIN, *TRAIN])  # a comparison takes longer than all runs
    words = COMPARE if name == "compare" else [*TRAIN[name], *SHORT]
    wanted, _ = reference(words, place, name)
    out, words = place / "runs", words if name == "compare" else [*words, "--resume"]
    limit = int(math.exp(rng.uniform(math.log(100), math.log(300_000))))
    full = run([*words, "--out", str(out)], place / "log", file_size=limit)
    if full.fault(0, 1):
        return f"{name}, files of {limit} bytes: {full.fault(0, 1)}"
    is_whole = len(full.output.encode()) < limit  # what the command printed is a file, too
    if full.code and is_whole and "may not be larger" not in full.output and name != "compare":
        return f"{name}, files of {limit} bytes: the reason is not given: {' '.join(full.output.split())[-200:]}"
    again = run([*words, "--out", str(out)], place / "log")
    if again.fault(0):
        return f"{name}, after a disk that was full: {again.fault(0)}"
    return "" if records(out) == wanted else f"{name}, files of {limit} bytes: another record afterwards"
