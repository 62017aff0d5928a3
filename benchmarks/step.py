"""What the parts of a training step cost: augmentation, optimiser, memory format, compiled code.

Variants of one thing take turns in a shuffled order, one thread, in seconds of this process alone. Whether a variant is
worth using is for the table to say: the ratio is to the first variant of the same thing.
"""

import argparse
import json
import os
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor
from torch.optim import SGD, Adam, Optimizer

from arml.bench.contenders import Make, from_closure, from_losses
from arml.bench.peers import RATE, Step
from arml.bench.problems import RESNET, WRN, Kind, Problem
from arml.bench.timing import Plan, Timing, rounds_that_fit, summary, turns
from arml.gradients import double_backward
from arml.lab.data import Augment
from arml.lab.environment import environment
from arml.lab.models import mlp, small, wrn
from arml.lab.tasks.exemplar import distort
from arml.lab.tasks.rotation import quarter_turns
from arml.methods import ARML, Uniform

SMALL = Kind("small-32", lambda: small(1, 32), 32, (1, 28, 28), batch=64, quick_batch=4)
THIN = Kind("WRN-10-1", lambda: wrn(10, 1), 64, (3, 32, 32), batch=16, quick_batch=4)
TABLE = Kind("mlp-64", lambda: mlp(103, 64), 64, (103,), batch=64, quick_batch=4)
IMAGES, TARGET = 256, 10_000
"""Images that are augmented together, and how many should be in a second."""
FEW, MANY = 2, 39
"""Auxiliary tasks: every gradient is stored for few, which needs no second derivative; for many it is not."""
FIXED, PASSES = "training step", "forward and backward"

Case: TypeAlias = tuple[str, str]
"""What is done, and in which variant."""
Cases: TypeAlias = Mapping[Case, Step]


@dataclass(frozen=True)
class Row:
    """Seconds of one case: the median of ``n`` turns and their quartiles."""

    part: str
    subject: str
    what: str
    variant: str
    median: float
    low: float
    high: float
    n: int
    first: float
    """Of the very first time, by the clock on the wall: with compiled code, mostly compiling."""
    ratio: float
    """To the first variant of the same thing."""


@dataclass(frozen=True)
class Part:
    """A table: what its rows are, and what else they show."""

    title: str
    subjects: Mapping[str, Callable[[bool], Cases]]
    """By name; told whether there is little time."""
    column: str
    shown: Callable[[Row, Sequence[Row]], str]
    """The last column: from a row and all rows of its subject."""


def augmentations(quick: bool) -> Cases:
    """Whole batches of CIFAR-10's size."""
    del quick
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(IMAGES, 3, 32, 32, generator=generator)
    changes: dict[str, Callable[[], object]] = {
        "flip, shift 2, noise .15 (CIFAR-10)": partial(Augment(flip=True, shift=2, noise=0.15), images, generator),
        "shift 2 (SVHN)": partial(Augment(flip=False, shift=2, noise=0.0), images, generator),
        "crop from .8, flip (PACS)": partial(Augment(flip=True, shift=0, noise=0.0, crop=0.8), images, generator),
        "flip, noise, cutout (exemplar)": partial(distort, images, generator),
        "four quarter turns (rotation)": partial(quarter_turns, images),
    }
    return {(name, ""): _silent(change) for name, change in changes.items()}


def _silent(change: Callable[[], object]) -> Step:
    def step() -> None:
        change()

    return step


def optimisers(kind: Kind, quick: bool) -> Cases:
    """The step of an optimiser alone, beside the passes that come before it."""
    problem = _problem(kind, FEW, quick)
    parameters = [*problem.trunk.parameters(), *problem.heads.parameters()]

    def passes() -> None:
        problem.optimizer.zero_grad()
        main, aux = problem.losses()
        (main + sum(aux.values())).backward()

    makes: dict[str, Callable[..., Optimizer]] = {
        "Adam": partial(Adam, lr=RATE),
        "SGD with momentum": partial(SGD, lr=RATE, momentum=0.9),
    }
    variants: dict[str, dict[str, bool]] = {"default": {}, "foreach": {"foreach": True}, "fused": {"fused": True}}
    return {(PASSES, ""): passes} | {
        (name, variant): _silent(make(parameters, **how).step)
        for name, make in makes.items()
        for variant, how in variants.items()
    }


def formats(kind: Kind, quick: bool) -> Cases:
    """Images and convolutions with channels in the first or in the last place."""
    orders = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
    problems = {name: _problem(kind, FEW, quick) for name in orders}
    for name, problem in problems.items():
        problem.trunk.to(memory_format=orders[name])  # type: ignore[call-overload]  # torch does not annotate it
    makes = {FIXED: from_losses(Uniform()), "update, double_backward": from_losses(ARML(lr=RATE), double_backward)}
    return {(what, variant): make(problem) for what, make in makes.items() for variant, problem in problems.items()}


class Compiled(Problem):
    """A problem whose trunk runs as ``compiled``; its parameters are shared and stepped as those of any other."""

    def __init__(self, kind: Kind, num_aux: int, batch: int | None, compiled: Callable[[Tensor], Tensor]) -> None:
        super().__init__(kind, num_aux, batch)
        self.compiled = compiled

    def features(self) -> Tensor:
        """What all heads see, [B, F]."""
        return self.compiled(self.inputs)


def compiled_steps(updates: bool, kind: Kind, quick: bool) -> Cases:
    """One trunk, as it is and compiled; the Reweighter finds by itself which way to update works."""
    torch._dynamo.reset()
    # Else code compiled at a plain step would allow one backward pass only, and an update needs more.
    torch._functorch.config.donated_buffer = False
    trunk = kind.trunk()
    alike = replace(kind, trunk=lambda: trunk)
    batch = kind.quick_batch if quick else None
    variants: dict[str, Callable[[int], Problem]] = {
        "eager": lambda num_aux: Problem(alike, num_aux, batch),
        "compiled": partial(_compiled, alike, batch, torch.compile(trunk)),
    }
    makes: dict[str, tuple[Make, int]] = {FIXED: (from_losses(Uniform()), FEW)}
    if updates:
        arml = ARML(lr=RATE)
        for num_aux in (FEW, MANY):
            makes[f"update, K = {num_aux}"] = (from_losses(arml), num_aux)
            makes[f"update by closure, K = {num_aux}"] = (from_closure(arml, lambda problem: problem.trunk), num_aux)
    return {
        (what, variant): make(problem(num_aux))
        for what, (make, num_aux) in makes.items()
        for variant, problem in variants.items()
    }


def _compiled(kind: Kind, batch: int | None, compiled: Callable[[Tensor], Tensor], num_aux: int) -> Problem:
    return Compiled(kind, num_aux, batch, compiled)


def _problem(kind: Kind, num_aux: int, quick: bool) -> Problem:
    return Problem(kind, num_aux, kind.quick_batch if quick else None)


def images_a_second(row: Row, rows: Sequence[Row]) -> str:
    """How many are augmented."""
    del rows
    return f"{IMAGES / row.median:,.0f}"


def share(row: Row, rows: Sequence[Row]) -> str:
    """Of the optimiser in a step that is its passes and the optimiser's."""
    (passes,) = (other.median for other in rows if other.what == PASSES)
    return "" if row.what == PASSES else f"{row.median / (row.median + passes):.1%}"


def first_time(row: Row, rows: Sequence[Row]) -> str:
    """Seconds of the first step."""
    del rows
    return f"{row.first:.1f} s"


def nothing_more(row: Row, rows: Sequence[Row]) -> str:
    """For tables without a last column of their own."""
    del row, rows
    return ""


def parts(with_compiler: bool) -> dict[str, Part]:
    """All tables, by their names in the record."""
    found = {
        "augmentation": Part(
            f"Augmentation of {IMAGES} images of 3 x 32 x 32 (target: {TARGET:,} a second)",
            {"batch": augmentations},
            "images a second",
            images_a_second,
        ),
        "optimiser": Part(
            "Step of the optimiser",
            {kind.name: partial(optimisers, kind) for kind in (TABLE, SMALL, RESNET)},
            "of a whole step",
            share,
        ),
        "memory format": Part(
            f"Memory format, K = {FEW}",
            {kind.name: partial(formats, kind) for kind in (SMALL, THIN, WRN, RESNET)},
            "",
            nothing_more,
        ),
    }
    if with_compiler:
        subjects = {kind.name: partial(compiled_steps, True, kind) for kind in (SMALL, WRN)}
        subjects |= {kind.name: partial(compiled_steps, False, kind) for kind in (THIN, RESNET)}
        found["compile"] = Part("torch.compile of the trunk", subjects, "first step", first_time)
    return found


def measure(name: str, part: Part, plan: Plan, quick: bool, console: Console) -> list[Row]:
    """All rows of a part."""
    rows: list[Row] = []
    for subject, make in part.subjects.items():
        console.print(f"{name}: {subject}")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            cases = make(quick)
            first = {case: _on_the_wall(step) for case, step in cases.items()}
            timings = _timed(cases, plan, console)
        # Such as that a way to update does not work on compiled code; torch's own remarks are of other kinds.
        for text in dict.fromkeys(str(warning.message) for warning in said if warning.category is UserWarning):
            console.print(f"  {text}")
        for (what, variant), timing in timings.items():
            reference = next(other.median for (same, _), other in timings.items() if same == what)
            ratio = timing.median / reference
            rows.append(Row(name, subject, what, variant, *timing, first[what, variant], ratio))
    return rows


def _timed(cases: Cases, plan: Plan, console: Console) -> dict[Case, Timing]:
    warm = {case: plan.seconds_of(step) for case, step in cases.items()}
    due = turns(list(cases), rounds_that_fit(warm, (), plan), ())
    seconds: dict[Case, list[float]] = {case: [] for case in cases}
    for case in track(due, description="measuring", console=console, transient=True):
        seconds[case].append(plan.seconds_of(cases[case]))
    return {case: summary(values) for case, values in seconds.items()}


def _on_the_wall(step: Step) -> float:
    """Compilers run in processes of their own, which only the clock on the wall sees."""
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def table(part: Part, rows: Sequence[Row]) -> Table:
    """One line for each case."""
    number = " to ".join(str(n) for n in sorted({min(row.n for row in rows), max(row.n for row in rows)}))
    shown = Table("", "", "", "ms", "quartiles", "ratio", part.column, title=f"{part.title}\n{number} turns")
    for before, row in zip([None, *rows], rows, strict=False):
        subject = [other for other in rows if other.subject == row.subject]
        if before and row is subject[0]:
            shown.add_section()
        shown.add_row(
            row.subject if row is subject[0] else "",
            row.what,
            row.variant,
            f"{1000 * row.median:.3g}",
            f"{1000 * row.low:.3g} - {1000 * row.high:.3g}",
            f"{row.ratio:.2f}" if row.variant else "",
            part.shown(row, subject),
        )
    return shown


def record(plan: Plan, quick: bool, rows: Sequence[Row]) -> dict[str, object]:
    """Everything that is needed to read the numbers later."""
    settings = {**asdict(plan), "clock": plan.clock(), "quick": quick}
    return {"settings": settings, "environment": environment(), "timings": [asdict(row) for row in rows]}


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Cost of the parts of a training step.")
    parser.add_argument("--quick", action="store_true", help="tiny batches, 2 rounds: to see that everything runs")
    parser.add_argument("--compile", action="store_true", help="torch.compile, too: minutes, and a C++ compiler")
    parser.add_argument("--repeats", type=int, default=15, help="rounds (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=60, help="of each network at most (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=Path("runs/step.json"), help="default: %(default)s")
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error(f"--repeats should be at least 1. Got {options.repeats}.")
    compiler = os.environ.get("CXX", "g++")
    if options.compile and shutil.which(compiler) is None:
        parser.error(f"--compile needs a C++ compiler, and there is no {compiler}. Install one, or name it in CXX.")
    return options


def main() -> int:
    """Measures, prints, records after each part."""
    options, console, rows = parse(), Console(), []
    torch.set_num_threads(1)
    plan = Plan(repeats=2 if options.quick else options.repeats, seconds=options.seconds)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as cache:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache  # what was compiled before would make compiling look quick
        for name, part in parts(options.compile).items():
            found = measure(name, part, plan, options.quick, console)
            console.print(table(part, found))
            rows += found
            options.output.write_text(json.dumps(record(plan, options.quick, rows), indent=1) + "\n")
    console.print(f"All numbers: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
