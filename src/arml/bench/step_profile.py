"""Where the time of a step that updates the weights goes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.profiler import ProfilerActivity, profile

from arml.bench.contenders import every_step_reweighter
from arml.bench.peers import RATE
from arml.bench.problems import Kind, Problem
from arml.bench.result import Operation, Phase
from arml.bench.timing import Plan, Step, silence_profiler
from arml.methods import ARML

FORWARD, AGAIN = "forward", "pass along the direction (dual numbers)"
KEPT, DIRECTION, SECOND = (
    "gradient of the direction, kept as a graph",
    "gradient of the direction",
    "second backward, to the weights",
)
REST, BACKWARD, OPTIMISER = "Reweighter, all else", "training: backward", "training: optimiser"
MOST_OPERATIONS = 8


class _Laps(TorchFunctionMode):
    """A stopwatch for parts of a step. It sees calls of ``autograd.grad`` from outside; nothing is patched."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan
        self.seconds: dict[str, float] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is not torch.autograd.grad:
            return func(*args, **(kwargs or {}))
        with self.lap(self._gradient_name(keeps_graph=bool((kwargs or {}).get("create_graph")))):
            return func(*args, **(kwargs or {}))

    def _gradient_name(self, *, keeps_graph: bool) -> str:
        if keeps_graph:
            return KEPT
        return SECOND if KEPT in self.seconds else DIRECTION

    @contextmanager
    def lap(self, name: str) -> Iterator[None]:
        """Count the time inside as ``name``."""
        start = self.plan.read_clock()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + self.plan.read_clock() - start


def step_phases(kind: Kind, num_aux: int, batch: int | None, plan: Plan, repeats: int) -> list[Phase]:
    """The parts of a step that updates, without and with a closure: medians of ``repeats`` steps after two warm-ups.

    Parts are timed one by one in the same step. The time of the Reweighter's call outside its passes is one part.
    """
    found = []
    for closure in (False, True):
        step = _timed_step(Problem(kind, num_aux, batch, plan.device), plan, closure=closure)
        laps = [step() for _ in range(2 + repeats)][2:]
        seconds = {name: median(lap[name] for lap in laps) for name in laps[0]}
        whole = sum(seconds.values())
        found += [Phase(kind.name, num_aux, closure, name, 1000 * s, s / whole) for name, s in seconds.items()]
    return found


def _timed_step(problem: Problem, plan: Plan, *, closure: bool) -> Callable[[], dict[str, float]]:
    """A training step that returns the seconds of its parts, in order."""
    reweighter = every_step_reweighter(problem, ARML(lr=RATE), problem.trunk)

    def step() -> dict[str, float]:
        with _Laps(plan) as laps:
            losses = _timed_losses(problem, laps)
            start = plan.read_clock()
            loss = reweighter(closure=losses) if closure else reweighter(*losses())
            rest = plan.read_clock() - start - sum(laps.seconds.values())
            problem.optimizer.zero_grad()
            with laps.lap(BACKWARD):
                loss.backward()
            with laps.lap(OPTIMISER):
                problem.optimizer.step()
        passes = {name: s for name, s in laps.seconds.items() if name not in (BACKWARD, OPTIMISER)}
        return {**passes, REST: rest, **{name: laps.seconds[name] for name in (BACKWARD, OPTIMISER)}}

    return step


def _timed_losses(problem: Problem, laps: _Laps) -> Callable[[], tuple[Tensor, dict[str, Tensor]]]:
    """A closure whose first call counts as the forward pass, and every later call as a pass of the update."""

    def losses() -> tuple[Tensor, dict[str, Tensor]]:
        with laps.lap(AGAIN if FORWARD in laps.seconds else FORWARD):
            return problem.losses()

    return losses


def step_operations(kind: Kind, num_aux: int, batch: int | None, plan: Plan) -> list[Operation]:
    """The most expensive operations of a step that updates, without and with a closure, by torch's profiler."""
    found = []
    for closure in (False, True):
        problem = Problem(kind, num_aux, batch, plan.device)
        reweighter = every_step_reweighter(problem, ARML(lr=RATE), problem.trunk)
        step = _training_step(problem, reweighter, closure=closure)
        step()  # warm-up
        found += [Operation(closure, *one) for one in expensive_operations(step)]
    return found


def _training_step(problem: Problem, reweighter: Callable[..., Tensor], *, closure: bool) -> Step:
    if closure:
        return lambda: problem.descend(reweighter(closure=problem.losses))
    return lambda: problem.descend(reweighter(*problem.losses()))


def expensive_operations(step: Step) -> list[tuple[str, int, float]]:
    """Name, calls and milliseconds of the operations that take the most time, without the operations they call."""
    with silence_profiler(), profile(activities=[ProfilerActivity.CPU]) as profiler:
        step()
    averages = sorted(profiler.key_averages(), key=lambda one: -one.self_cpu_time_total)
    return [(one.key, one.count, one.self_cpu_time_total / 1000) for one in averages[:MOST_OPERATIONS]]
