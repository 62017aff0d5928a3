"""ARML itself in a world: the real Reweighter trains, the real Langevin noise samples."""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from arml.langevin import Langevin
from arml.methods import ARML, Method
from arml.reweighter import Reweighter
from arml.theory.checks import Array, check_count, check_same_size
from arml.theory.gaussian import Quadratic
from arml.theory.objectives import mean_products
from arml.theory.world import World


class WorldRun(NamedTuple):
    """What a run found."""

    alpha: Array
    """The weights [K], averaged over the second half of the run."""
    path: Array
    """The weights after every step, [steps, K]."""
    samples: Array
    """theta of every chain after the last step, [chains, d]."""


def run_arml(
    world: World,
    main: Quadratic,
    *,
    chains: int = 32,
    steps: int = 300,
    seed: int = 0,
    method: Method[Any] | None = None,
) -> WorldRun:
    """The paper's algorithm with noise, on losses that are negative log-likelihoods.

    Several chains of theta run side by side with one set of weights. Their inner products add up, so that an update
    sees the mean over :math:`p^J` with less scatter than one chain gives; the weights take shorter steps by as much.

    Args:
        world: the world.
        main: the main loss, from ``world.likelihood`` or ``world.draw``.
        chains: copies of theta.
        steps: training steps, each with an update of the weights.
        seed: seeds the noise.
        method: how weights are learned; ``None``: ARML with a step of 1/2 over the largest curvature.
    """
    check_count("chains", chains)
    check_count("steps", steps)
    check_same_size("main", main.centre, "true_prior", world.true_prior.mean)
    theta = torch.nn.Parameter(torch.tensor(np.tile(main.centre, (chains, 1))))
    names = [f"task {number}" for number in range(world.num_tasks)]
    method = ARML(lr=_weight_step(world, main) / chains) if method is None else method
    reweighter = Reweighter(method, names, [theta], every=1, convergence=None)
    optimizer = torch.optim.SGD([theta], lr=safe_step(world, main))
    # The losses are sums over examples already, as in the paper: N = 1.
    Langevin(optimizer, num_examples=1, seed=seed)
    parts = [to_torch(loss) for loss in (main, *world.tasks)]
    path = np.empty((steps, world.num_tasks))
    for step in range(steps):
        losses = [_loss(theta, *part) for part in parts]
        optimizer.zero_grad()
        reweighter(losses[0], dict(zip(names, losses[1:], strict=True))).backward()
        optimizer.step()
        path[step] = list(reweighter.weights.values())
    return WorldRun(path[steps // 2 :].mean(0), path, theta.detach().numpy().copy())


def safe_step(world: World, main: Quadratic) -> float:
    """A tenth of what the steepest direction of the joint loss allows, whatever the weights."""
    steepest = max(float(np.linalg.eigvalsh(task.precision)[-1]) for task in world.tasks)
    return 0.1 / (float(np.linalg.eigvalsh(main.precision)[-1]) + world.num_tasks * steepest)


def to_torch(loss: Quadratic) -> tuple[Tensor, Tensor]:
    """Centre and precision as tensors."""
    return torch.tensor(loss.centre), torch.tensor(loss.precision)


def _loss(theta: Tensor, centre: Tensor, precision: Tensor) -> Tensor:
    """The loss, summed over chains."""
    away = theta - centre
    return 0.5 * ((away @ precision) * away).sum()


def _weight_step(world: World, main: Quadratic) -> float:
    equal = np.ones(world.num_tasks)
    products = mean_products(world, main, world.joint(main, equal))
    return float(0.5 / np.linalg.eigvalsh(products[1:, 1:])[-1])
