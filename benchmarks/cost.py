"""What an update of the weights costs, against the number K of auxiliary tasks.

A training step that also measures gradients and updates the weights is timed against the same step with fixed weights
at the same K. All cases take turns, so that whatever else the machine does hits them alike.

The last lines compare the update with ``double_backward`` at K = 39 and at K = 2: the time of the one should be at most
twice that of the other. The exit code is 1 if it is not.
"""

import argparse
import json
import os
import platform
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torchjd.aggregation import Mean
from torchjd.autojac import jac_to_grad, mtl_backward

from arml import alignment, project_to_simplex
from arml.gradients import CentralDifferences, DualNumbers, Engine, double_backward, one_by_one, pairwise

FIXED = "fixed weights"
SLOW = {"pairwise", "one_by_one", "TorchJD mtl_backward", "TorchJD, chunks of 1"}
"""Rows whose time grows with K: timed in every third round only, and not above ``MAX_SLOW`` tasks."""
MAX_SLOW = 39
SMALL, LARGE, TARGET = 2, 39, 2.0
"""An update with ``double_backward`` at ``LARGE`` tasks should cost at most ``TARGET`` times one at ``SMALL`` tasks."""

Step: TypeAlias = Callable[[], None]
Case: TypeAlias = tuple[str, int]
"""Name of a row, K."""


@dataclass(frozen=True)
class Settings:
    """What is measured, and how."""

    num_aux: tuple[int, ...] = (2, 10, 39, 120)
    repeats: int = 15
    threads: int = 1
    batch: int = 64


class Block(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, num_in: int, num_out: int, stride: int) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(num_in, num_out, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(num_out),
            nn.ReLU(),
            nn.Conv2d(num_out, num_out, 3, padding=1, bias=False),
            nn.BatchNorm2d(num_out),
        )
        self.around = nn.Conv2d(num_in, num_out, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The sum of both ways."""
        return torch.relu(self.convolutions(x) + self.around(x))


def small_resnet() -> nn.Module:
    """Three stages of 16, 32 and 64 channels, down to 64 features."""
    blocks = [Block(3, 16, stride=1), Block(16, 32, stride=2), Block(32, 64, stride=2)]
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten())


class Bench:
    """One network with K auxiliary tasks, and the steps to be timed on it."""

    def __init__(self, num_aux: int, batch: int) -> None:
        torch.manual_seed(0)
        self.num_aux = num_aux
        self.trunk = small_resnet()
        self.heads = nn.ModuleList(nn.Linear(64, 10) for _ in range(1 + num_aux))
        self.images = torch.randn(batch, 3, 32, 32)
        self.labels = torch.randint(10, (1 + num_aux, batch))
        self.direction = torch.cat([torch.ones(1, 1), -torch.ones(1, num_aux)], dim=1)
        self.optimizer = torch.optim.SGD([*self.trunk.parameters(), *self.heads.parameters()], lr=1e-4)

    def losses(self) -> Tensor:
        """[1 + K], main task first."""
        return torch.stack(self._losses_of(self.trunk(self.images)))

    def _losses_of(self, features: Tensor) -> list[Tensor]:
        return [cross_entropy(head(features), labels) for head, labels in zip(self.heads, self.labels, strict=True)]

    def with_fixed_weights(self) -> None:
        """A plain training step, all weights 1."""
        self._step_on(self.losses().sum())

    def with_update(self, engine: Engine) -> Step:
        """A step that also makes one ARML update, with inner products from ``engine``."""

        def step() -> None:
            losses = self.losses()
            products = alignment(losses, self.trunk, self.direction, engine=engine)[0, 1:]
            weights = project_to_simplex(1 + 0.1 * products, total=float(len(products)))
            self._step_on(losses[0] + weights @ losses[1:])

        return step

    def with_torchjd(self, chunk: int | None) -> Step:
        """A step of TorchJD: the Jacobian of all losses, of which the mean is taken."""

        def step() -> None:
            self.optimizer.zero_grad()
            features = self.trunk(self.images)
            mtl_backward(self._losses_of(features), features, parallel_chunk_size=chunk)
            jac_to_grad(self.trunk.parameters(), Mean())
            self.optimizer.step()

        return step

    def _step_on(self, loss: Tensor) -> None:
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def steps(self) -> dict[str, Step]:
        """All rows of the table for this K."""
        engines: dict[str, Engine] = {
            "pairwise": pairwise,
            "one_by_one": one_by_one,
            "double_backward": double_backward,
            "DualNumbers": DualNumbers(self.losses, self.trunk),
            "CentralDifferences": CentralDifferences(self.losses),
        }
        rows: dict[str, Step] = {FIXED: self.with_fixed_weights}
        rows |= {name: self.with_update(engine) for name, engine in engines.items()}
        rows |= {"TorchJD mtl_backward": self.with_torchjd(None), "TorchJD, chunks of 1": self.with_torchjd(1)}
        return {name: step for name, step in rows.items() if self.num_aux <= MAX_SLOW or name not in SLOW}


class Timing(NamedTuple):
    """Seconds of a step: the median of ``n`` repetitions and their quartiles."""

    median: float
    low: float
    high: float
    n: int


def measure(settings: Settings, console: Console) -> dict[Case, Timing]:
    """Times all cases in rounds, after one round of warm-up, each round in another order."""
    torch.set_num_threads(settings.threads)
    clock = time.process_time if clock_name(settings) == "process_time" else time.perf_counter
    steps = {(name, k): step for k in settings.num_aux for name, step in Bench(k, settings.batch).steps().items()}
    seconds: dict[Case, list[float]] = {case: [] for case in steps}
    turns = schedule(list(steps), settings.repeats)
    for case, counts in track(turns, description="measuring", console=console):
        start = clock()
        steps[case]()
        if counts:
            seconds[case].append(clock() - start)
    return {case: summary(values) for case, values in seconds.items()}


def clock_name(settings: Settings) -> str:
    """Time of this process alone is hardly disturbed by others, but it adds up the work of all threads."""
    return "process_time" if settings.threads == 1 else "perf_counter"


def schedule(cases: Sequence[Case], repeats: int) -> list[tuple[Case, bool]]:
    """Whose turn it is, and whether it counts: the warm-up does not."""
    order = random.Random(0)
    turns = [(case, False) for case in cases]
    for i in range(repeats):
        due = [case for case in cases if i % 3 == 0 or case[0] not in SLOW]
        turns += [(case, True) for case in order.sample(due, len(due))]
    return turns


def summary(seconds: Sequence[float]) -> Timing:
    """Median and quartiles."""
    low, median, high = np.quantile(seconds, [0.25, 0.5, 0.75]).tolist()
    return Timing(median, low, high, len(seconds))


def growth(timings: dict[Case, Timing]) -> dict[str, Any]:
    """How much more an update costs at ``LARGE`` than at ``SMALL`` tasks, in seconds and against fixed weights."""
    small, large = timings["double_backward", SMALL].median, timings["double_backward", LARGE].median
    seconds = large / small
    ratios = (large / timings[FIXED, LARGE].median) / (small / timings[FIXED, SMALL].median)
    return {"seconds": seconds, "ratios": ratios, "target": TARGET, "met": max(seconds, ratios) <= TARGET}


def table(timings: dict[Case, Timing], settings: Settings) -> Table:
    """Ratios to the step with fixed weights at the same K, with half the distance between quartiles."""
    title = f"Time of a training step that also updates the weights; {FIXED} = 1\nmedian ± half the quartile distance"
    shown = Table("", *(f"K = {k}" for k in settings.num_aux), title=title)
    for name in dict.fromkeys(name for name, _ in timings):
        shown.add_row(name, *(cell(timings, name, k) for k in settings.num_aux))
    fixed = (f"{1000 * timings[FIXED, k].median:.0f} ms" for k in settings.num_aux)
    shown.add_section()
    shown.add_row(f"{FIXED}, time", *fixed)
    return shown


def cell(timings: dict[Case, Timing], name: str, num_aux: int) -> str:
    """One entry of the table, empty where nothing was measured."""
    if (name, num_aux) not in timings:
        return ""
    timing, unit = timings[name, num_aux], timings[FIXED, num_aux].median
    return f"{timing.median / unit:.1f} ± {(timing.high - timing.low) / 2 / unit:.1f}"


def record(settings: Settings, timings: dict[Case, Timing]) -> dict[str, Any]:
    """Everything that is needed to read the numbers later."""
    machine = {"processor": platform.processor() or platform.machine(), "cpus": os.cpu_count()}
    rows = [
        {"name": name, "num_aux": k, "ratio": timing.median / timings[FIXED, k].median, **timing._asdict()}
        for (name, k), timing in timings.items()
    ]
    return {
        "settings": {**asdict(settings), "clock": clock_name(settings)},
        "versions": {"torch": torch.__version__, "torchjd": version("torchjd"), "python": platform.python_version()},
        "machine": {**machine, "system": platform.platform()},
        "timings": rows,
        "growth": growth(timings),
    }


def parse() -> tuple[Settings, Path]:
    """Settings and the file to write, from the command line."""
    default = Settings()
    parser = argparse.ArgumentParser(description="Cost of an update of the weights against the number of tasks.")
    parser.add_argument("--quick", action="store_true", help="K = 2 and 39 only, 3 rounds")
    parser.add_argument("--repeats", type=int, help=f"rounds (default: {default.repeats})")
    parser.add_argument("--threads", type=int, default=default.threads, help="threads (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=default.batch, help="images in a batch (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=Path("runs/cost.json"), help="default: %(default)s")
    options = parser.parse_args()
    if min(options.threads, options.batch, 1 if options.repeats is None else options.repeats) < 1:
        parser.error("--repeats, --threads and --batch should be at least 1.")
    settings = replace(default, threads=options.threads, batch=options.batch)
    if options.quick:
        settings = replace(settings, num_aux=(SMALL, LARGE), repeats=3)
    return settings if options.repeats is None else replace(settings, repeats=options.repeats), options.output


def main() -> int:
    """Measures, prints, records; 0 if the target is met."""
    settings, output = parse()
    console = Console()
    timings = measure(settings, console)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(record(settings, timings), indent=1) + "\n")
    console.print(table(timings, settings))
    console.print(f"All numbers: {output}")
    found = growth(timings)
    outcome = "met" if found["met"] else "not met"
    console.print(
        f"double_backward, K = {LARGE} against K = {SMALL}: {found['seconds']:.2f} times the seconds, "
        f"{found['ratios']:.2f} times the ratio to {FIXED}; target <= {TARGET:g}: {outcome}"
    )
    return 0 if found["met"] else 1


if __name__ == "__main__":
    sys.exit(main())
