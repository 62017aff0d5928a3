"""The optimiser, the Reweighter and the noise of a run."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch.amp import GradScaler
from torch.optim import SGD, Adam, AdamW, Optimizer

from arml.convergence import Convergence
from arml.lab.build.method_file import method_facts
from arml.lab.catalogue import GRID_SEARCH, GRIDS, LEARNERS, MethodFacts, find_method
from arml.lab.hardware import FUSED
from arml.lab.learners.base import Learner
from arml.lab.models.network import Network, Trunk, keep_statistics
from arml.lab.run import Run
from arml.lab.run_kinds import Suite
from arml.langevin import Langevin
from arml.methods import ARML, OLAUX, GatedARML, Method
from arml.reweighter import Reweighter
from arml.schedule import Growing

PRESET_METHODS = ("agreement", "arml")
"""The methods of the presets ``cpu`` and ``paper``."""
R = TypeVar("R", bound=Run)


def make_optimizer(run: Run, network: Network, lr: float) -> Optimizer:
    """Adam, AdamW, or stochastic gradient descent with momentum."""
    fused = next(network.parameters()).device.type in FUSED
    if run.optimizer == "sgd":
        return SGD(network.parameters(), lr, momentum=run.momentum, weight_decay=run.weight_decay, fused=fused)
    adam = AdamW if run.optimizer == "adamw" else Adam
    return adam(network.parameters(), lr, weight_decay=run.weight_decay, fused=fused)


def make_scaler(run: Run, learner: Learner[Any], device: torch.device) -> GradScaler | None:
    """The scale of losses in float16; ``None`` for other precisions."""
    if run.precision != "fp16":
        return None
    if learner.takes_own_steps:
        raise ValueError(
            f"{run.line().learner} trains a second network, whose gradients would have no loss scale in fp16. Choose "
            "--precision bf16 or fp32."
        )
    return GradScaler(device.type)


def compile_trunk(run: Run, learner: Learner[Any], trunk: Trunk, example: torch.Size) -> None:
    """Compiles ``trunk`` in place if the run asks for it; a warning says why where it does not work."""
    if not run.compile:
        return
    if not learner.calls_trunk:
        reason = f"{run.line().learner} looks at single layers of the trunk, which compiled code does not have"
    else:
        trunk.compile()
        reason = _try_compiled(trunk, example)
    if reason:
        trunk._compiled_call_impl = None  # what Module.compile() has set
        warnings.warn(f"--compile does not work here, and training goes on without it: {reason}.", stacklevel=2)


def _try_compiled(trunk: Trunk, example: torch.Size) -> str:
    """Why a compiled pass, forwards and backwards, does not work; empty if it does."""
    parameter = next(trunk.parameters())
    try:
        with keep_statistics(trunk):
            trunk(parameter.new_zeros(2, *example)).sum().backward()
    except Exception as error:  # noqa: BLE001 -- compilers fail in many ways
        return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
    finally:
        trunk.zero_grad()
    return ""


def settle_method(run: R) -> R:
    """``run`` with equal weights if no method weights the losses of its learner, so that its record tells the truth.

    The default method of a preset is dropped; one that was asked for is refused.
    """
    if run.line().method or run.method == "uniform":
        return run
    if run.method not in PRESET_METHODS:
        raise ValueError(_refusal(run))
    return replace(run, method="uniform")


def _refusal(run: Run) -> str:
    return (
        f"{run.line().learner} has no losses that a method weights: they are weighted as in its paper, if it has any. "
        f"Got --method {run.method}. Leave --method out, or choose a learner whose tasks are weighted: "
        f"{', '.join(name for name in LEARNERS[run.setting] if name in run.weighted)}."
    )


def make_reweighter(
    run: Run, tasks: Sequence[str], trunk: Trunk, *, aux_scale: float, train_on_main: bool
) -> Reweighter | None:
    """The run's method over ``tasks``; ``None`` if there are none."""
    if not tasks:
        return None
    if not run.line().method and run.method != "uniform":
        raise ValueError(_refusal(run))
    if run.method.startswith(GRID_SEARCH) and run.method not in GRIDS.get(len(tasks), {}):
        raise ValueError(
            f"The grid search weights two auxiliary tasks, by grid-A, or three, by grid-A-B-C. Got {run.method} for "
            f"{len(tasks)}: {', '.join(tasks)}."
        )
    facts = find_facts(run)
    return Reweighter(
        _set_step_size(facts.make(trunk), run.weight_lr),
        tasks,
        trunk,
        every=None if facts.sets_its_own_scale else _schedule(run),
        aux_scale=aux_scale,
        train_on_main=train_on_main,
        convergence=_first_stage(run) if facts.two_stages else None,
    )


def _schedule(run: Run) -> int | Growing:
    return Growing(run.every) if run.growing else run.every


def find_facts(run: Run) -> MethodFacts:
    """The facts about the run's method, from its own file or the catalogue."""
    return method_facts(run.method_file) if isinstance(run, Suite) and run.method_file else find_method(run.method)


def _first_stage(run: Run) -> Convergence:
    """Until the weights have settled, but for a quarter of the run at least and half of it at most.

    A rule that counted updates alone would end the first stage of a long run at once: noise that hides where the
    weights are heading looks like weights that have settled. And there has to be a second stage.
    """
    early, half = count_updates(run, math.ceil(run.steps / 4)), count_updates(run, run.steps // 2)
    # The history is first judged at 4 windows or more: after the updates of the first quarter.
    return Convergence(max(run.window, early // 4 + 1), tolerance=0.1, at_most=max(1, half))


def count_updates(run: Run, steps: int) -> int:
    """The number of updates in the first ``steps`` steps.

    >>> from arml.lab.run_kinds import SemiSupervised
    >>> count_updates(SemiSupervised(every=5), 11), count_updates(SemiSupervised(every=5, growing=True), 11)
    (3, 11)
    """
    every = _schedule(run)
    if isinstance(every, int):
        return math.ceil(steps / every)
    updates, calls = 0, 0
    while calls < steps:
        calls += every.after(calls)
        updates += 1
    return updates


def _set_step_size(method: Method[Any], lr: float | None) -> Method[Any]:
    """ARML and OL_AUX step by inner products of gradients, which grow with K; GradNorm's step has no such scale."""
    if lr is None:
        return method
    if isinstance(method, GatedARML):
        return replace(method, arml=replace(method.arml, lr=lr))
    return replace(method, lr=lr) if isinstance(method, ARML | OLAUX) else method


@dataclass
class _NoTrunk:
    """A trunk as far as making a method is concerned."""

    last_layer: str = ""


def takes_step_size(run: Run) -> bool:
    """Whether ``weight_lr`` makes a difference to the run's method."""
    method, step = find_facts(run).make(_NoTrunk()), 0.123
    return _set_step_size(method, step) != method


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
