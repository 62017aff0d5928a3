"""A training loop on quadratic losses with the real Reweighter, as a user would write it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from arml.reweighter import Reweighter
from arml.theory.checks import Array
from arml.theory.failures.contenders import Contender
from arml.theory.gaussian import Quadratic


class Trained(NamedTuple):
    """The end of a training run."""

    theta: Array
    path: Array
    """What every auxiliary loss was multiplied by at each step, [steps, K]."""


def train(
    losses: Sequence[Quadratic],
    contender: Contender,
    *,
    steps: int = 150,
    rate: float = 0.2,
    start: ArrayLike | None = None,
    gradient_noise: Sequence[float] | None = None,
    every: int = 4,
    seed: int = 0,
) -> Trained:
    """Trains on ``losses``, the main one first, from ``start``, 0 by default.

    Args:
        losses: all losses.
        contender: the method and its settings.
        steps: training steps of plain gradient descent.
        rate: their size over the inverse of the largest curvature of the joint loss: units then make no difference.
        start: where theta starts.
        gradient_noise: standard deviation of each task's gradient noise, as minibatches make it; ``None``: none.
        every: steps between updates of the weights, for methods without a schedule of their own.
        seed: seeds the gradient noise.
    """
    size, names = len(losses[0].centre), [f"task {number}" for number in range(1, len(losses))]
    theta = torch.nn.Parameter(torch.zeros(size, dtype=torch.float64) if start is None else torch.tensor(start))
    reweighter = contender.make(names, theta, steps, every)
    rng, noise = np.random.default_rng(seed), np.zeros(len(losses)) if gradient_noise is None else gradient_noise
    centres = torch.tensor(np.stack([loss.centre for loss in losses]))
    precisions = torch.tensor(np.stack([loss.precision for loss in losses]))
    path = np.empty((steps, len(names)))
    for step in range(steps):
        tilt = torch.tensor(rng.standard_normal((len(losses), size)) * np.asarray(noise)[:, None])
        values = _losses(theta, centres, precisions, tilt)
        path[step] = _fill_gradient(reweighter, theta, values, names)
        _step(theta, np.concatenate([[1.0], path[step]]), precisions.numpy(), rate)
    return Trained(theta.detach().numpy().copy(), path)


def _losses(theta: Tensor, centres: Tensor, precisions: Tensor, tilt: Tensor) -> list[Tensor]:
    """Every loss; a minibatch tilts it, which adds noise to its gradient."""
    away = theta - centres
    values = 0.5 * torch.einsum("ki,kij,kj->k", away, precisions, away) + (tilt * away).sum(1)
    return list(values.unbind())


def _fill_gradient(
    reweighter: Reweighter, theta: torch.nn.Parameter, values: list[Tensor], names: list[str]
) -> list[float]:
    theta.grad = None
    reweighter(values[0], dict(zip(names, values[1:], strict=True))).backward()
    return list(reweighter.factors.values())


@torch.no_grad()
def _step(theta: torch.nn.Parameter, factors: Array, precisions: Array, rate: float) -> None:
    assert theta.grad is not None
    steepest = float(np.linalg.eigvalsh(np.tensordot(factors, precisions, 1))[-1])
    theta.sub_(theta.grad, alpha=rate / steepest)
