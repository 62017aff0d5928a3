"""The training steps that are compared: each learns weights, or keeps them, on the same problem."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from torch import nn

from arml.bench.peers import RATE, has_torchjd, one_backward_per_task, squared_norm, torchjd_step
from arml.bench.problems import Problem
from arml.bench.timing import Step
from arml.gradients import Engine, Shared, double_backward, one_by_one
from arml.methods import ARML, OLAUX, CosineSim, GatedARML, GradNorm, Method, Uniform, recommended
from arml.reweighter import Reweighter

FIXED, GRAPH, DUAL, DIFFERENCES = "fixed weights", "double_backward", "DualNumbers", "CentralDifferences"
RECOMMENDED = "Agreement (recommended)"

MakeStep: TypeAlias = Callable[[Problem], Step]


@dataclass(frozen=True)
class Contender:
    """A row of the table: how to make the training step of a problem."""

    name: str
    make: MakeStep
    grows: bool = False
    """Whether its time grows with K. If so, it gets fewer turns, and none at large K."""
    in_brief: bool = True
    """Whether a quick look includes it."""


def contenders(rate: float = RATE) -> tuple[Contender, ...]:
    """All contenders: fixed weights first, then our engines, then other methods, then other people's steps.

    ``rate`` is the step size of the weights for contenders that learn them.
    """
    arml = ARML(lr=rate)
    return (
        Contender(FIXED, step_from_losses(Uniform())),
        Contender("weighted sum by hand", sum_by_hand),
        Contender(GRAPH, step_from_losses(arml, double_backward)),
        Contender(DUAL, step_from_closure(arml, lambda problem: problem.trunk)),
        Contender(DIFFERENCES, step_from_closure(arml, lambda problem: list(problem.trunk.parameters()))),
        Contender("one_by_one", step_from_losses(arml, one_by_one), grows=True),
        Contender(RECOMMENDED, step_from_losses(recommended()), in_brief=False),
        Contender("CosineSim", step_from_losses(CosineSim()), in_brief=False),
        Contender("OL_AUX", step_from_losses(OLAUX(lr=rate)), in_brief=False),
        Contender("Gated ARML", step_from_losses(GatedARML(arml)), in_brief=False),
        Contender("GradNorm, last layer", _gradnorm_step, grows=True, in_brief=False),
        Contender("squared norm (authors' release)", lambda problem: squared_norm(problem, rate)),
        Contender("one backward per task (LibMTL)", lambda problem: one_backward_per_task(problem, rate), grows=True),
        *(_torchjd_contenders() if has_torchjd() else ()),
    )


def _torchjd_contenders() -> tuple[Contender, ...]:
    return (
        Contender("TorchJD mtl_backward", lambda problem: torchjd_step(problem, None), grows=True),
        Contender("TorchJD, chunks of 1", lambda problem: torchjd_step(problem, 1), grows=True),
    )


def sum_by_hand(problem: Problem) -> Step:
    """A step with fixed weights and no Reweighter, as a user would write it."""
    weights = dict.fromkeys(problem.tasks, 1.0)

    def step() -> None:
        main, aux = problem.losses()
        problem.descend(main + sum(weights[task] * loss for task, loss in aux.items()))

    return step


def _gradnorm_step(problem: Problem) -> Step:
    return step_from_losses(GradNorm(layer=problem.last_layer()))(problem)


def step_from_losses(method: Method[Any], engine: Engine | None = None) -> MakeStep:
    """A step that passes its losses to a Reweighter, which updates the weights at every step."""

    def make(problem: Problem) -> Step:
        reweighter = every_step_reweighter(problem, method, problem.trunk, engine)
        return lambda: problem.descend(reweighter(*problem.losses()))

    return make


def step_from_closure(method: Method[Any], shared: Callable[[Problem], nn.Module | list[nn.Parameter]]) -> MakeStep:
    """A step that passes a closure to the Reweighter.

    Dual numbers need ``shared`` to be a module; given parameters only, the Reweighter uses central differences.
    """

    def make(problem: Problem) -> Step:
        reweighter = every_step_reweighter(problem, method, shared(problem))
        return lambda: problem.descend(reweighter(closure=problem.losses))

    return make


def every_step_reweighter(
    problem: Problem, method: Method[Any], shared: Shared, engine: Engine | None = None
) -> Reweighter:
    """A Reweighter that updates the weights at every step and never stops."""
    return Reweighter(method, problem.tasks, shared, every=1, convergence=None, engine=engine)
