"""Does training with noise sample from the joint posterior? Where everything is normal, the answer is exact."""

from typing import NamedTuple

import numpy as np
import torch

from arml.langevin import Langevin
from arml.theory.checks import Array
from arml.theory.gaussian import Gaussian


def stationary_covariance(target: Gaussian, step: float, *, gradient_noise: float = 0.0, too_hot: float = 1.0) -> Array:
    r"""The covariance that Langevin steps of size :math:`\epsilon` settle at, where N(m, C) is meant.

    .. math:: \theta \leftarrow \theta - \epsilon (P (\theta - m) + \xi) + N(0, 2 \epsilon T),\quad \xi \sim N(0, v)
        \quad\Rightarrow\quad (2 T + \epsilon v)\, [P (2 - \epsilon P)]^{-1}

    A step that is not short widens the samples by :math:`1 / (1 - \epsilon p / 2)` in a direction of precision p, and
    the noise v of minibatch gradients by :math:`1 + \epsilon v / 2`. From :math:`\epsilon p = 2` on, nothing settles.

    Args:
        target: the distribution that is meant.
        step: epsilon.
        gradient_noise: v, the variance of each entry of the gradient.
        too_hot: T, by how much the variance of the noise is too large: N if a mean over N examples is sampled with the
            noise of a sum.
    """
    _check_step(target, step)
    p = target.precision
    scale = 2 * too_hot + step * gradient_noise
    return np.asarray(scale * np.linalg.inv(p @ (2 * np.eye(target.size) - step * p)))


def sample_by_training(
    target: Gaussian,
    step: float,
    *,
    chains: int = 500,
    steps: int = 200,
    num_examples: int = 1,
    missing_n: bool = False,
    seed: int = 0,
) -> Array:
    """theta [chains, d] after training with the real Langevin noise on the loss whose posterior is ``target``.

    Args:
        target: the posterior.
        step: epsilon, on the sum of the losses over examples.
        chains: independent copies of theta.
        steps: training steps.
        num_examples: N: the loss is a mean over N examples, trained with the step N epsilon.
        missing_n: the noise has variance 2 epsilon, as printed in the paper for sums, although the loss is a mean.
        seed: seeds the noise.
    """
    _check_step(target, step)
    centre, precision = torch.tensor(target.mean), torch.tensor(target.precision / num_examples)
    theta = torch.nn.Parameter(centre.repeat(chains, 1))
    optimizer = torch.optim.SGD([theta], lr=step * num_examples)
    noise = Langevin(optimizer, num_examples=1 if missing_n else num_examples, seed=seed)
    for _ in range(steps):
        optimizer.zero_grad()
        away = theta - centre
        (0.5 * (away @ precision) * away).sum().backward()
        optimizer.step()
    noise.remove()
    return theta.detach().numpy().copy()


def _check_step(target: Gaussian, step: float) -> None:
    steepest = float(np.linalg.eigvalsh(target.precision)[-1])
    if not 0 < step * steepest < 2:
        raise ValueError(
            f"`step` should lie between 0 and 2 / {steepest:.4g}, twice the inverse of the largest precision: longer "
            f"steps diverge. Got {step!r}."
        )


class TwoSamples(NamedTuple):
    """A test of whether two samples come from one distribution."""

    distance: float
    """The energy distance."""
    p_value: float
    """The share of random divisions of all points that are at least as far apart."""


def energy_test(x: Array, y: Array, rng: np.random.Generator, *, permutations: int = 199) -> TwoSamples:
    r"""The energy test of Székely and Rizzo, *Testing for equal distributions in high dimension*, InterStat 2004.

    .. math:: 2 E\|X - Y\| - E\|X - X'\| - E\|Y - Y'\|

    is 0 if and only if both distributions are the same. It needs no bins and sees every difference.
    """
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1]:
        raise ValueError(f"Both samples should have the same number of columns. Got shapes {x.shape} and {y.shape}.")
    points = np.concatenate([x, y])
    distances = np.sqrt(np.maximum(((points[:, None] - points[None]) ** 2).sum(-1), 0))
    # With s = 1 / n on x and -1 / m on y, the statistic is -s' D s.
    signs = np.concatenate([np.full(len(x), 1 / len(x)), np.full(len(y), -1 / len(y))])
    found = -float(signs @ distances @ signs)
    shuffled = np.stack([rng.permutation(signs) for _ in range(permutations)])
    others = -np.einsum("pi,pi->p", shuffled @ distances, shuffled)
    return TwoSamples(found, float((1 + (others >= found).sum()) / (1 + permutations)))
