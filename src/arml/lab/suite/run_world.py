"""One method in one world, without records: for research, in seconds."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from arml.lab.build.skeleton import assemble
from arml.lab.build.suite import contribute
from arml.lab.experiments.suite_runs import world_run
from arml.lab.train import descend, losses_of, set_lr
from arml.lab.worlds.world import World
from arml.methods import Method
from arml.reweighter import Reweighter


def run_world(
    world: World,
    method: Method[Any] | None,
    seed: int = 0,
    *,
    tasks: Sequence[str] | None = None,
    natural: bool = False,
    steps: int | None = None,
    **reweighting: Any,
) -> tuple[float, dict[str, float]]:
    """Trains in ``world`` and returns the test error in % and the final weights.

    >>> from arml import Uniform
    >>> from arml.lab.suite import WORLDS, run_world
    >>> error, weights = run_world(WORLDS["digits-one-helps-mlp"], Uniform(), steps=2)
    >>> weights
    {'plain': 1.0}

    Args:
        world: one of ``WORLDS``.
        method: the method to weight the tasks with; ``None``: the main task alone.
        seed: seeds the data, the initial network and the batches. Those of worlds for ``test`` begin at 2000.
        tasks: the auxiliary tasks to use; ``None``: all.
        natural: whether to undo units and factors of the losses, as the oracle does: it is ``Uniform()`` on
            ``world.helpful`` with ``natural=True``.
        steps: training steps; ``None``: the world's own number.
        reweighting: further arguments of ``Reweighter``, such as ``every`` (5 by default).
    """
    run = world_run(world, seed=seed, method="uniform", learner="main_only" if method is None else "joint")
    run = run if steps is None else replace(run, steps=steps)
    data = world.make(seed)
    used = data.aux if tasks is None else {name: data.aux[name] for name in tasks}
    used = {name: task.in_natural_units() if natural else task for name, task in used.items()}
    parts = assemble(run, contribute(run, replace(data, aux=used)))
    if method is not None and used:
        parts.reweighter = Reweighter(method, tuple(used), parts.network.trunk, **{"every": run.every, **reweighting})
    parts.network.train()
    for step in range(run.steps):
        set_lr(parts.optimizer, run, step)
        descend(parts, losses_of(parts, step))
    parts.network.eval()
    return parts.test(parts.network)["error"], parts.reweighter.weights if parts.reweighter is not None else {}
