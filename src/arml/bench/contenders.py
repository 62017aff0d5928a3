"""The training steps that are compared: each learns weights, or keeps them, on the same problem."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from torch import nn

from arml.bench.peers import RATE, Step, has_torchjd, one_backward_per_task, squared_norm, torchjd_step
from arml.bench.problems import Problem
from arml.gradients import Engine, Shared, double_backward, one_by_one
from arml.methods import ARML, OLAUX, CosineSim, GatedARML, GradNorm, Method, Uniform
from arml.reweighter import Reweighter

FIXED, GRAPH, DUAL, DIFFERENCES = "fixed weights", "double_backward", "DualNumbers", "CentralDifferences"

Make: TypeAlias = Callable[[Problem], Step]


@dataclass(frozen=True)
class Way:
    """A row of the table: how to make the training step of a problem."""

    name: str
    make: Make
    grows: bool = False
    """Whether its time grows with K; then it gets fewer turns, and none with many tasks."""
    in_brief: bool = True
    """Whether a quick look shows it, too."""


def ways(rate: float = RATE) -> tuple[Way, ...]:
    """All of them, fixed weights first, then ours, then other methods, then what others do.

    ``rate`` is the step size of the weights, where a way learns them by ARML.
    """
    arml = ARML(lr=rate)
    return (
        Way(FIXED, from_losses(Uniform())),
        Way("weighted sum by hand", by_hand),
        Way(GRAPH, from_losses(arml, double_backward)),
        Way(DUAL, from_closure(arml, lambda problem: problem.trunk)),
        Way(DIFFERENCES, from_closure(arml, lambda problem: list(problem.trunk.parameters()))),
        Way("one_by_one", from_losses(arml, one_by_one), grows=True),
        Way("CosineSim", from_losses(CosineSim()), in_brief=False),
        Way("OL_AUX", from_losses(OLAUX(lr=rate)), in_brief=False),
        Way("Gated ARML", from_losses(GatedARML(arml)), in_brief=False),
        Way("GradNorm, last layer", _gradnorm, grows=True, in_brief=False),
        Way("squared norm (authors' release)", lambda problem: squared_norm(problem, rate)),
        Way("one backward a task (LibMTL)", lambda problem: one_backward_per_task(problem, rate), grows=True),
        *(_torchjd() if has_torchjd() else ()),
    )


def _torchjd() -> tuple[Way, ...]:
    return (
        Way("TorchJD mtl_backward", lambda problem: torchjd_step(problem, None), grows=True),
        Way("TorchJD, chunks of 1", lambda problem: torchjd_step(problem, 1), grows=True),
    )


def by_hand(problem: Problem) -> Step:
    """A step with fixed weights without a Reweighter, as a user would write it."""
    weights = dict.fromkeys(problem.tasks, 1.0)

    def step() -> None:
        main, aux = problem.losses()
        problem.descend(main + sum(weights[task] * loss for task, loss in aux.items()))

    return step


def _gradnorm(problem: Problem) -> Step:
    return from_losses(GradNorm(layer=problem.last_layer()))(problem)


def from_losses(method: Method[Any], engine: Engine | None = None) -> Make:
    """A step that hands its losses to a Reweighter, which measures at every step."""

    def make(problem: Problem) -> Step:
        reweighter = reweighter_of(problem, method, problem.trunk, engine)
        return lambda: problem.descend(reweighter(*problem.losses()))

    return make


def from_closure(method: Method[Any], shared: Callable[[Problem], nn.Module | list[nn.Parameter]]) -> Make:
    """A step that hands a closure to the Reweighter: dual numbers need the module, parameters do for differences."""

    def make(problem: Problem) -> Step:
        reweighter = reweighter_of(problem, method, shared(problem))
        return lambda: problem.descend(reweighter(closure=problem.losses))

    return make


def reweighter_of(problem: Problem, method: Method[Any], shared: Shared, engine: Engine | None = None) -> Reweighter:
    """A Reweighter that updates the weights at every step, and never stops."""
    return Reweighter(method, problem.tasks, shared, every=1, convergence=None, engine=engine)
