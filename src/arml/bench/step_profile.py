"""Where the time of a step that updates the weights goes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.profiler import ProfilerActivity, profile

from arml.bench.contenders import reweighter_of
from arml.bench.peers import RATE, Step
from arml.bench.problems import Kind, Problem
from arml.bench.result import Operation, Phase
from arml.bench.timing import Plan, quiet
from arml.methods import ARML

FORWARD, AGAIN = "forward", "pass along the direction (dual numbers)"
KEPT, DIRECTION, SECOND = (
    "gradient of the direction, kept as a graph",
    "gradient of the direction",
    "second backward, to the weights",
)
BESIDES, BACKWARD, OPTIMISER = "Reweighter, all else", "training: backward", "training: optimiser"
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
        with self.lap(self._of_gradient(kept=bool((kwargs or {}).get("create_graph")))):
            return func(*args, **(kwargs or {}))

    def _of_gradient(self, *, kept: bool) -> str:
        if kept:
            return KEPT
        return SECOND if KEPT in self.seconds else DIRECTION

    @contextmanager
    def lap(self, name: str) -> Iterator[None]:
        """What is done inside counts as ``name``."""
        start = self.plan.now()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + self.plan.now() - start


def phases_of(kind: Kind, num_aux: int, batch: int | None, plan: Plan, repeats: int) -> list[Phase]:
    """The parts of an update step, without and with a closure; the median of ``repeats`` steps after two others.

    Parts are timed one by one in the same step. What the Reweighter does besides its passes is the rest of its call.
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
    reweighter = reweighter_of(problem, ARML(lr=RATE), problem.trunk)

    def step() -> dict[str, float]:
        with _Laps(plan) as laps:
            losses = _timed_losses(problem, laps)
            start = plan.now()
            loss = reweighter(closure=losses) if closure else reweighter(*losses())
            besides = plan.now() - start - sum(laps.seconds.values())
            problem.optimizer.zero_grad()
            with laps.lap(BACKWARD):
                loss.backward()
            with laps.lap(OPTIMISER):
                problem.optimizer.step()
        passes = {name: s for name, s in laps.seconds.items() if name not in (BACKWARD, OPTIMISER)}
        return {**passes, BESIDES: besides, **{name: laps.seconds[name] for name in (BACKWARD, OPTIMISER)}}

    return step


def _timed_losses(problem: Problem, laps: _Laps) -> Callable[[], tuple[Tensor, dict[str, Tensor]]]:
    """Computes the losses; the first time that is the forward pass, after that a pass of the update."""

    def losses() -> tuple[Tensor, dict[str, Tensor]]:
        with laps.lap(AGAIN if FORWARD in laps.seconds else FORWARD):
            return problem.losses()

    return losses


def operations_of(kind: Kind, num_aux: int, batch: int | None, plan: Plan) -> list[Operation]:
    """The operations that take the most time in an update step, by the profiler's account of it, calls left out."""
    found = []
    for closure in (False, True):
        problem = Problem(kind, num_aux, batch, plan.device)
        reweighter = reweighter_of(problem, ARML(lr=RATE), problem.trunk)
        step = _step(problem, reweighter, closure=closure)
        step()
        found += [Operation(closure, *one) for one in most_expensive(step)]
    return found


def _step(problem: Problem, reweighter: Callable[..., Tensor], *, closure: bool) -> Step:
    if closure:
        return lambda: problem.descend(reweighter(closure=problem.losses))
    return lambda: problem.descend(reweighter(*problem.losses()))


def most_expensive(step: Step) -> list[tuple[str, int, float]]:
    """Name, number of calls and milliseconds of the operations that take the most time, each without what it calls."""
    with quiet(), profile(activities=[ProfilerActivity.CPU]) as profiler:
        step()
    averages = sorted(profiler.key_averages(), key=lambda one: -one.self_cpu_time_total)
    return [(one.key, one.count, one.self_cpu_time_total / 1000) for one in averages[:MOST_OPERATIONS]]
