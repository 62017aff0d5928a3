"""What one training step costs when it also updates the weights, against the number of auxiliary tasks K.

1.0 is the same step with fixed weights, at the same K and in the same run. Candidates take turns, so that whatever else
the machine does hits all of them alike. Written to runs/cost.json.
"""

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional as F
from torchjd.autojac import mtl_backward

from arml import alignment
from arml.gradients import CentralDifferences, DualNumbers, Engine, double_backward, one_by_one, pairwise

TARGET = 2.0
"""double_backward at K = 39 may cost at most this many times what it costs at K = 2."""
LINEAR_UP_TO = 39
"""Candidates whose cost grows with K are not measured beyond this K."""


def block(channels: int, width: int, stride: int) -> nn.Sequential:
    """Two 3x3 convolutions with BatchNorm."""
    return nn.Sequential(
        nn.Conv2d(channels, width, 3, stride, 1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.Conv2d(width, width, 3, 1, 1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
    )


class Problem:
    """A small residual-style network on 32x32 images with one binary head a task."""

    def __init__(self, num_aux: int, batch: int) -> None:
        """Random images and labels."""
        pool = [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        self.trunk = nn.Sequential(block(3, 16, 1), block(16, 32, 2), block(32, 64, 2), *pool)
        self.heads = nn.ModuleList(nn.Linear(64, 2) for _ in range(1 + num_aux))
        self.x, self.y = torch.randn(batch, 3, 32, 32), torch.randint(0, 2, (1 + num_aux, batch))
        self.direction = torch.tensor([[1.0] + [-1.0] * num_aux])

    def losses_of(self, features: Tensor) -> list[Tensor]:
        """One loss for each head, the main one first."""
        return [F.cross_entropy(head(features), y) for head, y in zip(self.heads, self.y, strict=True)]

    def losses(self) -> list[Tensor]:
        """A forward pass."""
        return self.losses_of(self.trunk(self.x))

    def fixed(self) -> None:
        """The plain step everything is compared with."""
        torch.stack(self.losses()).sum().backward()

    def update_by(self, engine: Engine) -> Callable[[], None]:
        """The plain step with one measurement of inner products before its backward."""

        def step() -> None:
            losses = self.losses()
            alignment(losses, self.trunk, self.direction, engine=engine)
            torch.stack(losses).sum().backward()

        return step

    def torchjd(self) -> None:
        """TorchJD's engine: every task's gradient of the trunk, stored in ``.jac``."""
        features = self.trunk(self.x)
        mtl_backward(self.losses_of(features), features=features)
        for parameter in self.trunk.parameters():
            del parameter.jac  # type: ignore[attr-defined]

    def candidates(self) -> dict[str, Callable[[], None]]:
        """What is measured, the plain step first."""

        def recompute() -> Tensor:
            return torch.stack(self.losses())

        constant = {
            "fixed weights": self.fixed,
            "double_backward": self.update_by(double_backward),
            "DualNumbers (closure)": self.update_by(DualNumbers(recompute, self.trunk)),
            "CentralDifferences (closure)": self.update_by(CentralDifferences(recompute)),
        }
        linear = {
            "pairwise": self.update_by(pairwise),
            "one_by_one": self.update_by(one_by_one),
            "TorchJD mtl_backward": self.torchjd,
        }
        return constant | (linear if len(self.heads) - 1 <= LINEAR_UP_TO else {})


def seconds(step: Callable[[], None]) -> float:
    """How long one step takes."""
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


Times = dict[int, dict[str, list[float]]]
"""Seconds by K and candidate."""


def measure(tasks: Sequence[int], batch: int, repeats: int, progress: Progress) -> Times:
    """Every candidate at every K in turn: one round to warm up, then ``repeats`` that count."""
    candidates = {num_aux: Problem(num_aux, batch).candidates() for num_aux in tasks}
    times: Times = {num_aux: {name: [] for name in steps} for num_aux, steps in candidates.items()}
    for turn in progress.track(range(1 + repeats), description="turns"):
        for num_aux, steps in candidates.items():
            for name, step in steps.items():
                taken = seconds(step)
                if turn:
                    times[num_aux][name].append(taken)
    return times


def ratios(times: dict[str, list[float]]) -> dict[str, list[float]]:
    """Every candidate's time over the plain step's in the same turn."""
    return {name: [t / f for t, f in zip(ts, times["fixed weights"], strict=True)] for name, ts in times.items()}


def show(results: Times, console: Console) -> None:
    """The table: median ratio and its quartiles."""
    table = Table(
        "step", *(f"K = {k}" for k in results), title="Cost of a step that updates the weights (1.0: fixed weights)"
    )
    for name in next(iter(results.values())):
        cells = []
        for times in results.values():
            values = ratios(times).get(name)
            low, middle, high = (
                statistics.quantiles(values, n=4) if values and len(values) > 1 else [(values or [0])[0]] * 3
            )
            cells.append(f"{middle:.2f} [{low:.2f}, {high:.2f}]" if values else "-")
        table.add_row(name, *cells)
    console.print(table)


def main() -> int:
    """Measures, shows, writes; 1 if the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="K = 2 and 39 only, 3 repeats")
    parser.add_argument("--repeats", type=int, help="measured turns for each K (default: 9, with --quick 3)")
    parser.add_argument("--batch", type=int, default=64, help="images in a batch (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=Path("runs/cost.json"), help="default: %(default)s")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    repeats = args.repeats or (3 if args.quick else 9)
    tasks, console = (2, 39) if args.quick else (2, 10, 39, 120, 200), Console()
    with Progress(console=console) as progress:
        results = measure(tasks, args.batch, repeats, progress)
    show(results, console)
    growth = statistics.median(results[39]["double_backward"]) / statistics.median(results[2]["double_backward"])
    met = growth <= TARGET
    args.output.parent.mkdir(parents=True, exist_ok=True)
    machine = {"torch": torch.__version__, "machine": platform.machine(), "threads": args.threads, "batch": args.batch}
    args.output.write_text(json.dumps({**machine, "repeats": repeats, "growth": growth, "seconds": results}, indent=1))
    console.print(f"median and quartiles over {repeats} turns, {args.threads} thread(s), batch {args.batch}")
    console.print(
        f"double_backward, seconds at K = 39 over seconds at K = 2: {growth:.2f} (target <= {TARGET:g}: "
        f"{'met' if met else 'not met'}); all times in {args.output}"
    )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
