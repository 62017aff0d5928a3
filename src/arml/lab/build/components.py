"""The optimiser, the Reweighter and the noise of a run."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch.optim import SGD, Adam, Optimizer

from arml.convergence import Convergence
from arml.lab.build.method_file import method_facts
from arml.lab.catalogue import GRID, MethodFacts, find_method
from arml.lab.models.network import Network, Trunk
from arml.lab.run import Run
from arml.lab.run_kinds import Suite
from arml.langevin import Langevin
from arml.methods import ARML, OLAUX, GatedARML, Method
from arml.reweighter import Reweighter
from arml.schedule import Growing


def make_optimizer(run: Run, network: Network, lr: float) -> Optimizer:
    """Adam, or stochastic gradient descent with momentum."""
    if run.optimizer == "sgd":
        return SGD(network.parameters(), lr, momentum=run.momentum, weight_decay=run.weight_decay, fused=True)
    return Adam(network.parameters(), lr, weight_decay=run.weight_decay, fused=True)


def make_reweighter(
    run: Run, tasks: Sequence[str], trunk: Trunk, *, aux_scale: float, train_on_main: bool
) -> Reweighter | None:
    """The run's method over ``tasks``; ``None`` if there are none."""
    if not tasks:
        return None
    if run.method in GRID and len(tasks) != 2:
        raise ValueError(f"The grid search weights two auxiliary tasks. Got {len(tasks)}: {', '.join(tasks)}.")
    facts = find_facts(run)
    return Reweighter(
        _set_step_size(facts.make(trunk), run.weight_lr),
        tasks,
        trunk,
        every=Growing(run.every) if run.growing else run.every,
        aux_scale=aux_scale,
        train_on_main=train_on_main,
        convergence=_first_stage(run) if facts.two_stages else None,
    )


def find_facts(run: Run) -> MethodFacts:
    """The facts about the run's method, from its own file or the catalogue."""
    return method_facts(run.method_file) if isinstance(run, Suite) and run.method_file else find_method(run.method)


def _first_stage(run: Run) -> Convergence:
    """Until the weights have settled, but for half of the run at most: there has to be a second stage."""
    return Convergence(run.window, tolerance=0.1, at_most=max(1, run.steps // (2 * run.every)))


def _set_step_size(method: Method[Any], lr: float | None) -> Method[Any]:
    """ARML and OL_AUX step by inner products of gradients, which grow with K; GradNorm's step has no such scale."""
    if lr is None:
        return method
    if isinstance(method, GatedARML):
        return replace(method, arml=replace(method.arml, lr=lr))
    return replace(method, lr=lr) if isinstance(method, ARML | OLAUX) else method


def make_noise(
    run: Run, optimizer: Optimizer, network: Network, reweighter: Reweighter | None, *, num_examples: int
) -> Langevin | None:
    """Langevin noise on the trunk until the weights converge, for methods with two stages."""
    if not find_facts(run).two_stages or reweighter is None:
        return None
    return Langevin(
        optimizer,
        num_examples,
        parameters=network.trunk.parameters(),
        temperature=run.temperature,
        until=lambda: reweighter.converged,
        seed=run.seed,
    )
