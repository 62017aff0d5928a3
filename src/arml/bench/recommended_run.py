"""The recommended method: the steps of a run with it, each against a step with fixed weights."""

from collections.abc import Sequence

from arml.bench.contenders import FIXED, step_from_losses
from arml.bench.problems import Kind, Problem
from arml.bench.result import RecommendedStep
from arml.bench.timing import Plan, Step, Tick
from arml.bench.whole_run import count_updates, default_step, take_turns, total_ratio
from arml.fade import MainOnlyAtEnd
from arml.methods import Uniform, recommended
from arml.reweighter import Reweighter

RUN_STEPS = 300
"""Steps of a short run. Updates are frequent at first, so longer runs cost less."""
UPDATING, WAITING, SKIPPING = "updates the weights", "between two updates", "all tasks faded out and skipped"
NEVER = 10**9
"""Calls between two updates, more than any run has."""


def recommended_steps(kind: Kind, num_aux: int, batch: int | None, plan: Plan, tick: Tick) -> list[RecommendedStep]:
    """The steps of the recommended method, in turns with fixed weights; one turn before them is not counted."""
    problem = Problem(kind, num_aux, batch, plan.device)
    steps = {
        FIXED: default_step(problem, Uniform()),
        UPDATING: step_from_losses(recommended())(problem),
        WAITING: waiting_step(problem),
        SKIPPING: skipping_step(problem),
    }
    seconds = take_turns(steps, 1, plan.repeats, plan.seconds_of, tick)
    updates = count_updates(recommended().schedule(), RUN_STEPS)
    in_run = {UPDATING: updates, WAITING: RUN_STEPS - updates, SKIPPING: 0}
    return [
        RecommendedStep(kind.name, num_aux, name, number, plan.repeats, *total_ratio(seconds[name], seconds[FIXED]))
        for name, number in in_run.items()
    ]


def waiting_step(problem: Problem) -> Step:
    """A training step of the recommended method that updates nothing."""
    reweighter = Reweighter(recommended(), problem.tasks, problem.trunk, every=NEVER)
    problem.descend(reweighter(*problem.losses()))  # the first call updates
    return lambda: problem.descend(reweighter(*problem.losses()))


def skipping_step(problem: Problem) -> Step:
    """A training step of a loop that computes ``active_tasks`` only, once all tasks have faded out."""
    reweighter = Reweighter(recommended(), problem.tasks, problem.trunk, fade=MainOnlyAtEnd(until=1))

    def step() -> None:
        problem.descend(reweighter(*problem.losses_of_tasks(reweighter.active_tasks)))

    step()  # the last one in which tasks count
    return step


def run_ratio(steps: Sequence[RecommendedStep]) -> float:
    """The time of a run over that of the same run with fixed weights: the mean over its steps.

    >>> make = lambda number, ratio: RecommendedStep("MLP", 2, "", number, 1, ratio, ratio, ratio)
    >>> run_ratio([make(1, 3.0), make(3, 1.0), make(0, 0.5)])
    1.5
    """
    return sum(one.in_run * one.ratio for one in steps) / sum(one.in_run for one in steps)
