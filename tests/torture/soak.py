"""A long run: its memory does not grow."""

import random
import time
from pathlib import Path

from torture.commands import Process

STEPS = 100_000
MOST_GROWTH = 30 * 2**20
"""Bytes by which a process may grow between a fifth of the run and its end."""


def train_long(rng: random.Random, place: Path, share: float = 1.0) -> str:
    """Trains for 100 000 steps, or a share of them, and watches the memory of the process."""
    steps = max(1000, round(share * STEPS))
    words = ["train", "mlc", "--network", "mlp-8", "--batch-main", "4", "--batch-aux", "4", "--steps", f"{steps}"]
    often = ["--evaluate-every", f"{steps}", "--record-every", "100", "--checkpoint-every", f"{steps // 10}"]
    process = Process([*words, *often, "--seed", f"{rng.randrange(99)}", "--out", str(place / "runs")], place / "log")
    memory: list[int] = []
    while (answer := process.wait(0.2)) is None:
        memory.append(_resident(process.pid))
        if time.monotonic() - process.started > 3600:
            process.end()
    if answer.fault(0):
        return f"{steps} steps: {answer.fault(0)}"
    growth = memory[-2] - memory[len(memory) // 5]
    return "" if growth <= MOST_GROWTH else f"{steps} steps: {growth / 2**20:.1f} MiB more than after a fifth of them"


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
    except OSError:
        return 0
