"""A whole run with the Reweighter's default schedule, and a step after the weights have settled."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from torch.utils._python_dispatch import TorchDispatchMode

from arml.bench.contenders import FIXED, sum_by_hand
from arml.bench.problems import Kind, Problem
from arml.bench.result import SettledCost, WholeRun
from arml.bench.timing import Plan, Step, Tick, quartiles
from arml.convergence import Convergence
from arml.methods import ARML, Method, Uniform
from arml.reweighter import Reweighter
from arml.schedule import Growing

LEARNED, CLOSURE = "learned", "learned with a closure"
STEPS = 5000
"""Steps of the run whose cost is computed from its start: a short run for a network of this size."""


def whole_runs(kind: Kind, num_aux: int, batch: int | None, plan: Plan, blocks: int, tick: Tick) -> list[WholeRun]:
    """Training with learned weights, without and with a closure, against fixed ones.

    They take turns, step by step, so that whatever else the machine does affects all of them alike. A block is the
    steps from one update of the weights to the next in the long run. The first block updates the weights like every
    other, and is not counted.
    """
    problem, usual = Problem(kind, num_aux, batch, plan.device), Growing()
    every = usual.most
    learning = Reweighter(ARML(), problem.tasks, problem.trunk, every=every)
    with_closure = Reweighter(ARML(), problem.tasks, problem.trunk, every=every)
    keeping = Reweighter(Uniform(), problem.tasks, problem.trunk)
    steps: dict[str, Step] = {
        FIXED: lambda: problem.descend(keeping(*problem.losses())),
        LEARNED: lambda: problem.descend(learning(*problem.losses())),
        CLOSURE: lambda: problem.descend(with_closure(closure=problem.losses)),
    }
    seconds = take_turns(steps, every, blocks, plan.seconds_of, tick)
    fixed_ms = 1000 * float(np.median(seconds[FIXED])) / every
    runs = []
    for name in (LEARNED, CLOSURE):
        ratio, low, high = total_ratio(seconds[name], seconds[FIXED])
        whole = 1 + count_updates(usual, STEPS) * every * (ratio - 1) / STEPS
        case = (kind.name, num_aux, name == CLOSURE, every, blocks)
        runs.append(WholeRun(*case, fixed_ms, ratio, low, high, STEPS, whole))
    return runs


def count_updates(schedule: Growing, steps: int) -> int:
    """The number of updates in the first ``steps`` steps.

    >>> count_updates(Growing(most=4, rate=3), 14)  # after 0, 1, 2, 3, 5, 7 and 10 others
    7
    """
    updates, done = 0, 0
    while done < steps:
        updates, done = updates + 1, done + schedule.after(done)
    return updates


def take_turns(
    steps: Mapping[str, Step], block: int, blocks: int, seconds_of: Callable[[Step], float], tick: Tick
) -> dict[str, list[float]]:
    """Seconds of ``blocks`` blocks of ``block`` steps of each; one block before them is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(1 + blocks):
        taken = [{name: seconds_of(step) for name, step in steps.items()} for _ in range(block)]
        for name in steps if number else ():
            seconds[name].append(sum(turn[name] for turn in taken))
        tick(1 + number, 1 + blocks)
    return seconds


def total_ratio(ours: Sequence[float], fixed: Sequence[float]) -> tuple[float, float, float]:
    """The sum of ``ours`` over the sum of ``fixed``, and the quartiles of the ratio over pairs.

    >>> total_ratio([2.0, 3.0, 4.0], [1.0, 2.0, 1.0])
    (2.25, 1.75, 3.0)
    """
    pairs = quartiles([one / other for one, other in zip(ours, fixed, strict=True)])
    return sum(ours) / sum(fixed), pairs.low, pairs.high


def settled_cost(kind: Kind, num_aux: int, batch: int | None, plan: Plan, blocks: int) -> SettledCost:
    """A step with weights that have settled against one with fixed weights: their operations and their times."""
    problem = Problem(kind, num_aux, batch, plan.device)
    settled, fixed = settled_step(problem), default_step(problem, Uniform())
    seconds = take_turns({LEARNED: settled, FIXED: fixed}, 1, blocks, plan.seconds_of, lambda *_: None)
    operations = (count_operations(settled), count_operations(fixed), count_operations(sum_by_hand(problem)))
    return SettledCost(kind.name, num_aux, *operations, *total_ratio(seconds[LEARNED], seconds[FIXED]))


def settled_step(problem: Problem) -> Step:
    """A training step with ARML's weights once they have converged."""
    reweighter = Reweighter(ARML(), problem.tasks, problem.trunk, every=1, convergence=Convergence(at_most=1))
    while not reweighter.converged:
        problem.descend(reweighter(*problem.losses()))
    return lambda: problem.descend(reweighter(*problem.losses()))


def default_step(problem: Problem, method: Method[Any]) -> Step:
    """A training step with the Reweighter's defaults."""
    reweighter = Reweighter(method, problem.tasks, problem.trunk)
    return lambda: problem.descend(reweighter(*problem.losses()))


class _Counter(TorchDispatchMode):
    """Counts the operations of torch, including those of backward passes."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


def count_operations(step: Step) -> int:
    """The number of torch operations in a step, in all passes.

    >>> import torch
    >>> count_operations(lambda: torch.ones(2).add(1).mul(2))
    3
    """
    counter = _Counter()
    with counter:
        step()
    return counter.count
