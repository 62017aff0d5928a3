"""What the parts of a training step cost: augmentation, optimiser, memory format, few tasks, compiled code.

Variants take turns in a shuffled order, on one thread; only the time of this process counts. The table shows whether a
variant is worth using: its ratio is the time relative to the first variant.
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
from torch.nn.functional import cross_entropy
from torch.optim import SGD, Adam, Optimizer

from arml.bench.contenders import MakeStep, every_step_reweighter, step_from_closure, step_from_losses
from arml.bench.peers import RATE
from arml.bench.problems import RESNET, WRN, Kind, Problem
from arml.bench.timing import Plan, Step, Timing, quartiles, rounds_that_fit, turns
from arml.gradients import EngineFallbackWarning, double_backward, pairwise
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
"""Images that are augmented together, and the number of images per second that is the target."""
FEW, MANY = 2, 39
"""Numbers of auxiliary tasks: with few, the Reweighter stores every gradient and needs no second derivative."""
FIXED, PASSES = "training step", "forward and backward"

Case: TypeAlias = tuple[str, str]
"""An operation and its variant."""
Cases: TypeAlias = Mapping[Case, Step]


@dataclass(frozen=True)
class CaseTiming:
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
    """Wall-clock seconds of the very first turn: with compiled code, this is mostly compiling."""
    ratio: float
    """The median relative to that of the first variant."""


@dataclass(frozen=True)
class Part:
    """A table: its rows, and its last column."""

    title: str
    subjects: Mapping[str, Callable[[bool], Cases]]
    """Functions that make the cases, by name; their argument says whether this is a quick look."""
    column: str
    """Heading of the last column."""
    last_cell: Callable[[CaseTiming, Sequence[CaseTiming]], str]
    """The last cell of a row, from the row and all rows of its subject."""


def augmentations(quick: bool) -> Cases:
    """Augmentations of whole batches of images as large as CIFAR-10's."""
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
    return {(name, ""): _without_result(change) for name, change in changes.items()}


def _without_result(function: Callable[[], object]) -> Step:
    def step() -> None:
        function()

    return step


def optimisers(kind: Kind, quick: bool) -> Cases:
    """The step of an optimiser alone, and the passes that come before it."""
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
        (name, variant): _without_result(make(parameters, **how).step)
        for name, make in makes.items()
        for variant, how in variants.items()
    }


def formats(kind: Kind, quick: bool) -> Cases:
    """Images and convolutions with channels first or last."""
    orders = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
    problems = {name: _problem(kind, FEW, quick) for name in orders}
    for name, problem in problems.items():
        problem.trunk.to(memory_format=orders[name])  # type: ignore[call-overload]  # torch does not annotate it
    makes = {
        FIXED: step_from_losses(Uniform()),
        "update, double_backward": step_from_losses(ARML(lr=RATE), double_backward),
    }
    return {(what, variant): make(problem) for what, make in makes.items() for variant, problem in problems.items()}


class Apart(Problem):
    """A problem whose tasks each have a part of the batch, and a pass of their own."""

    def losses(self) -> tuple[Tensor, dict[str, Tensor]]:
        """The main loss, and the auxiliary losses by name."""
        parts = zip(self.heads, self.inputs.chunk(len(self.heads)), self.labels, strict=True)
        main, *aux = (cross_entropy(head(self.trunk(x)), y[: len(x)]) for head, x, y in parts)
        return main, dict(zip(self.tasks, aux, strict=True))


def few_tasks(kind: Kind, quick: bool) -> Cases:
    """Updates with two tasks: by each engine, and with gradients that the training step uses again."""
    batch, arml = kind.quick_batch if quick else kind.batch, ARML(lr=RATE)
    makes: dict[str, MakeStep] = {
        "fixed weights": step_from_losses(Uniform()),
        "pairwise": step_from_losses(arml, pairwise),
        "pairwise, reused": _reuse_gradients,
        "double_backward": step_from_losses(arml, double_backward),
    }
    problems = {"one batch for all tasks": Problem, "a batch per task": Apart}
    return {
        (what, variant): make(problem(kind, FEW, max(batch, 2 * (1 + FEW))))
        for what, problem in problems.items()
        for variant, make in makes.items()
    }


def _reuse_gradients(problem: Problem) -> Step:
    reweighter = every_step_reweighter(problem, ARML(lr=RATE), problem.trunk, pairwise)

    def step() -> None:
        main, aux = problem.losses()
        problem.optimizer.zero_grad()
        reweighter.backward(main, aux)
        problem.optimizer.step()

    return step


class Compiled(Problem):
    """A problem whose trunk runs as ``compiled``; its parameters are shared and trained as usual."""

    def __init__(self, kind: Kind, num_aux: int, batch: int | None, compiled: Callable[[Tensor], Tensor]) -> None:
        super().__init__(kind, num_aux, batch)
        self.compiled = compiled

    def features(self) -> Tensor:
        """The input of every head, [B, F]."""
        return self.compiled(self.inputs)


def compiled_steps(updates: bool, kind: Kind, quick: bool) -> Cases:
    """One trunk, eager and compiled; the Reweighter itself finds an engine that works."""
    torch._dynamo.reset()
    # Otherwise code compiled at a plain step would allow one backward pass only, and an update needs more.
    torch._functorch.config.donated_buffer = False
    trunk = kind.trunk()
    alike = replace(kind, trunk=lambda: trunk)
    batch = kind.quick_batch if quick else None
    variants: dict[str, Callable[[int], Problem]] = {
        "eager": lambda num_aux: Problem(alike, num_aux, batch),
        "compiled": partial(_compiled_problem, alike, batch, torch.compile(trunk)),
    }
    makes: dict[str, tuple[MakeStep, int]] = {FIXED: (step_from_losses(Uniform()), FEW)}
    if updates:
        arml = ARML(lr=RATE)
        for num_aux in (FEW, MANY):
            makes[f"update, K = {num_aux}"] = (step_from_losses(arml), num_aux)
            makes[f"update by closure, K = {num_aux}"] = (
                step_from_closure(arml, lambda problem: problem.trunk),
                num_aux,
            )
    return {
        (what, variant): make(problem(num_aux))
        for what, (make, num_aux) in makes.items()
        for variant, problem in variants.items()
    }


def _compiled_problem(kind: Kind, batch: int | None, compiled: Callable[[Tensor], Tensor], num_aux: int) -> Problem:
    return Compiled(kind, num_aux, batch, compiled)


def _problem(kind: Kind, num_aux: int, quick: bool) -> Problem:
    return Problem(kind, num_aux, kind.quick_batch if quick else None)


def images_per_second(row: CaseTiming, rows: Sequence[CaseTiming]) -> str:
    """The number of images augmented per second."""
    del rows
    return f"{IMAGES / row.median:,.0f}"


def optimiser_share(row: CaseTiming, rows: Sequence[CaseTiming]) -> str:
    """The optimiser's share of a step that consists of its passes and the optimiser."""
    (passes,) = (other.median for other in rows if other.what == PASSES)
    return "" if row.what == PASSES else f"{row.median / (row.median + passes):.1%}"


def first_seconds(row: CaseTiming, rows: Sequence[CaseTiming]) -> str:
    """The seconds of the first step."""
    del rows
    return f"{row.first:.1f} s"


def empty_cell(row: CaseTiming, rows: Sequence[CaseTiming]) -> str:
    """An empty cell, for tables without a last column."""
    del row, rows
    return ""


def parts(with_compiler: bool) -> dict[str, Part]:
    """All tables, by their names in the record."""
    found = {
        "augmentation": Part(
            f"Augmentation of {IMAGES} images of 3 x 32 x 32 (target: {TARGET:,} per second)",
            {"batch": augmentations},
            "images per second",
            images_per_second,
        ),
        "optimiser": Part(
            "Step of the optimiser",
            {kind.name: partial(optimisers, kind) for kind in (TABLE, SMALL, RESNET)},
            "of a whole step",
            optimiser_share,
        ),
        "memory format": Part(
            f"Memory format, K = {FEW}",
            {kind.name: partial(formats, kind) for kind in (SMALL, THIN, WRN, RESNET)},
            "",
            empty_cell,
        ),
        "few tasks": Part(
            f"Step that updates the weights, K = {FEW}",
            {kind.name: partial(few_tasks, kind) for kind in (SMALL, WRN, RESNET)},
            "",
            empty_cell,
        ),
    }
    if with_compiler:
        subjects = {kind.name: partial(compiled_steps, True, kind) for kind in (SMALL, WRN)}
        subjects |= {kind.name: partial(compiled_steps, False, kind) for kind in (THIN, RESNET)}
        found["compile"] = Part("torch.compile of the trunk", subjects, "first step", first_seconds)
    return found


def measure(name: str, part: Part, plan: Plan, quick: bool, console: Console) -> list[CaseTiming]:
    """All rows of a part."""
    rows: list[CaseTiming] = []
    for subject, make in part.subjects.items():
        console.print(f"{name}: {subject}")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            cases = make(quick)
            first = {case: _wall_seconds(step) for case, step in cases.items()}
            timings = _time_cases(cases, plan, console)
        # An engine that does not work on compiled code explains the time in the table; torch's warnings do not.
        fallbacks = [one.message for one in caught if isinstance(one.message, EngineFallbackWarning)]
        for text in dict.fromkeys(map(str, fallbacks)):
            console.print(f"  {text}")
        for (what, variant), timing in timings.items():
            reference = next(other.median for (same, _), other in timings.items() if same == what)
            ratio = timing.median / reference
            rows.append(CaseTiming(name, subject, what, variant, *timing, first[what, variant], ratio))
    return rows


def _time_cases(cases: Cases, plan: Plan, console: Console) -> dict[Case, Timing]:
    warm = {case: plan.seconds_of(step) for case, step in cases.items()}
    due = turns(list(cases), rounds_that_fit(warm, (), plan), ())
    seconds: dict[Case, list[float]] = {case: [] for case in cases}
    for case in track(due, description="measuring", console=console, transient=True):
        seconds[case].append(plan.seconds_of(cases[case]))
    return {case: quartiles(values) for case, values in seconds.items()}


def _wall_seconds(step: Step) -> float:
    """Wall-clock time: compilers run in their own processes, which the time of this process misses."""
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def table(part: Part, rows: Sequence[CaseTiming]) -> Table:
    """One line per case."""
    number = " to ".join(str(n) for n in sorted({min(row.n for row in rows), max(row.n for row in rows)}))
    made = Table("", "", "", "ms", "quartiles", "ratio", part.column, title=f"{part.title}\n{number} turns")
    for before, row in zip([None, *rows], rows, strict=False):
        subject = [other for other in rows if other.subject == row.subject]
        if before and row is subject[0]:
            made.add_section()
        made.add_row(
            row.subject if row is subject[0] else "",
            row.what,
            row.variant,
            f"{1000 * row.median:.3g}",
            f"{1000 * row.low:.3g} - {1000 * row.high:.3g}",
            f"{row.ratio:.2f}" if row.variant else "",
            part.last_cell(row, subject),
        )
    return made


def record(plan: Plan, quick: bool, rows: Sequence[CaseTiming]) -> dict[str, object]:
    """The numbers, with everything needed to understand them later."""
    settings = {**asdict(plan), "clock": plan.clock_name(), "quick": quick}
    return {"settings": settings, "environment": environment(), "timings": [asdict(row) for row in rows]}


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Cost of the parts of a training step.")
    parser.add_argument("--quick", action="store_true", help="tiny batches and 2 rounds, to check that everything runs")
    parser.add_argument(
        "--compile", action="store_true", help="measure torch.compile too; takes minutes and needs a C++ compiler"
    )
    parser.add_argument("--only", help="measure one part, such as 'few tasks'; without it, all of them")
    parser.add_argument("--repeats", type=int, default=15, help="largest number of rounds (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=60, help="time for each network (default: %(default)s)")
    parser.add_argument(
        "--output", type=Path, default=Path("runs/step.json"), help="JSON file to write (default: %(default)s)"
    )
    options = parser.parse_args()
    if options.only is not None and options.only not in parts(options.compile):
        parser.error(f"--only should be one of {', '.join(parts(options.compile))}. Got {options.only!r}.")
    if options.repeats < 1:
        parser.error(f"--repeats should be at least 1. Got {options.repeats}.")
    compiler = os.environ.get("CXX", "g++")
    if options.compile and shutil.which(compiler) is None:
        parser.error(f"--compile needs a C++ compiler, and there is no {compiler}. Install one, or name it in CXX.")
    return options


def main() -> int:
    """Measure and print each part, and write all numbers after it."""
    options, console, rows = parse(), Console(), []
    torch.set_num_threads(1)
    plan = Plan(repeats=2 if options.quick else options.repeats, seconds=options.seconds)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as cache:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache  # code compiled earlier would make compiling look fast
        for name, part in parts(options.compile).items():
            if options.only not in (None, name):
                continue
            found = measure(name, part, plan, options.quick, console)
            console.print(table(part, found))
            rows += found
            options.output.write_text(json.dumps(record(plan, options.quick, rows), indent=1) + "\n")
    console.print(f"All numbers: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
