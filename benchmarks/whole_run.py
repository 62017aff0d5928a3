"""What learning the weights adds to a whole run, with the update schedule of the multi-label presets.

Two runs that differ in nothing but the method, fixed and learned weights, take turns: as many steps of the one as lie
between two updates of the weights, then as many of the other, so that whatever else the machine does hits both alike.
Reading data, evaluation and recording are the same for both and are not timed.

The exit code is 1 if learned weights cost more than ``TARGET`` times the run with fixed weights.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, get_args

import torch
from rich.console import Console
from rich.progress import track

from arml.cli.multi_label import build
from arml.cli.names import METHODS
from arml.cli.train import data_folder
from arml.lab.environment import environment
from arml.lab.experiments.multi_label import DATASETS, cpu
from arml.lab.run import MethodName, MultiLabel
from arml.lab.train import Parts, descend, losses_of

TARGET = 1.10


@dataclass(frozen=True)
class Timing:
    """Seconds of all blocks of steps, learned and fixed weights alike."""

    fixed: list[float]
    learned: list[float]

    def ratio(self) -> float:
        """The whole of the one over the whole of the other."""
        return sum(self.learned) / sum(self.fixed)

    def spread(self) -> tuple[float, float]:
        """The quartiles of the ratio over pairs of blocks."""
        ratios = sorted(learned / fixed for learned, fixed in zip(self.learned, self.fixed, strict=True))
        quarter = len(ratios) // 4
        return ratios[quarter], ratios[-1 - quarter]


def main(words: Sequence[str] | None = None) -> int:
    """Measures, prints, writes JSON."""
    options, console = _options(words), Console()
    torch.set_num_threads(1)
    base: MultiLabel = replace(cpu(options.dataset), **({"every": options.every} if options.every else {}))
    cache = options.output.parent / "cache"
    parts = {
        method: build(replace(base, method=method), options.data_dir, cache) for method in ("uniform", options.method)
    }
    timing = measured(*parts.values(), block=base.every, blocks=options.blocks)
    (low, high), ratio = timing.spread(), timing.ratio()
    tasks = len(parts["uniform"].learner.tasks)
    console.print(
        f"{options.dataset}, {base.network}, K = {tasks}, weights updated every {base.every} steps, one thread"
    )
    console.print(f"fixed weights: {1000 * median(timing.fixed) / base.every:.1f} ms a step")
    console.print(f"{options.method}: {ratio:.3f} times that over {options.blocks * base.every} steps of each")
    console.print(
        f"(half of the {options.blocks} pairs of blocks lie between {low:.3f} and {high:.3f}); target: {TARGET}"
    )
    found: dict[str, Any] = {"dataset": options.dataset, "method": options.method, "every": base.every, "tasks": tasks}
    found |= {"ratio": ratio, "quartiles": [low, high], "seconds": vars(timing), "environment": environment()}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(found, indent=1))
    return 0 if ratio <= TARGET else 1


def measured(fixed: Parts[Any], learned: Parts[Any], *, block: int, blocks: int) -> Timing:
    """Times ``blocks`` blocks of ``block`` steps of each, in turns; one of each before that is not counted."""
    timing = Timing([], [])
    for number in track(range(blocks + 1), "blocks"):
        first, second = _seconds(fixed, number * block, block), _seconds(learned, number * block, block)
        if number:
            timing.fixed.append(first)
            timing.learned.append(second)
    return timing


def _seconds(parts: Parts[Any], start: int, steps: int) -> float:
    began = time.process_time()  # of this process alone: others do not count
    for step in range(start, start + steps):
        descend(parts, losses_of(parts, step).joint)
    return time.process_time() - began


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--dataset", choices=[name for name in DATASETS if name != "table"], default="yeast")
    parser.add_argument("--method", choices=[name for name in get_args(MethodName) if name in METHODS], default="arml")
    parser.add_argument("--every", type=int, help="steps between two updates; the preset's unless given")
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--data-dir", type=Path, default=data_folder())
    parser.add_argument("--output", type=Path, default=Path("runs/whole_run.json"))
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
