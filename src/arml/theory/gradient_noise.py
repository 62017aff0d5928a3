"""The noise of minibatch gradients against the injected noise, measured in a real semi-supervised run."""

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from arml.lab.build import Folders, build, complete
from arml.lab.run_kinds import SemiSupervised
from arml.lab.train import Parts, descend, losses_of, set_lr
from arml.theory.checks import Array


class NoiseSizes(NamedTuple):
    """What noise adds to a shared parameter in one step, at one moment: standard deviations, median over parameters."""

    step: int
    seed: int
    gradient: float
    r"""Of the minibatch, through Adam: :math:`\epsilon P s`, with s the standard deviation of the gradient."""
    injected: float
    r"""Of Langevin noise: :math:`\sqrt{2 \epsilon P / N}`."""
    gradient_plain: float
    r"""Of the minibatch in a plain step: :math:`\epsilon s`."""
    injected_plain: float
    r"""Of noise for a mean over N examples in a plain step: :math:`\sqrt{2 \epsilon / N}`."""
    injected_as_printed: float
    r"""Of noise as the paper prints it, without N: :math:`\sqrt{2 \epsilon}`."""


def measure_noise(seed: int, *, at: tuple[int, ...] = (25, 75, 150), batches: int = 12) -> list[NoiseSizes]:
    """Trains the preset on digits with two stages, and measures both kinds of noise after the steps ``at``.

    The gradient is that of the joint loss, with the weights of the moment, on ``batches`` fresh batches each time.
    """
    run = complete(SemiSupervised(method="arml_full", seed=seed))
    with tempfile.TemporaryDirectory() as folder:
        parts = build(run, Folders(Path(folder), Path(folder)))
    found = []
    for step in range(max(at)):
        set_lr(parts.optimizer, run, step)
        descend(parts, losses_of(parts, step))
        if step + 1 in at:
            found.append(_measure(parts, step + 1, seed, batches))
    return found


def _measure(parts: Parts[Any], step: int, seed: int, batches: int) -> NoiseSizes:
    assert parts.noise is not None
    s = np.stack([_gradient(parts, step) for _ in range(batches)]).std(0, ddof=1)
    lr, n = float(parts.optimizer.param_groups[0]["lr"]), parts.noise.num_examples
    p = _preconditioner(parts)
    return NoiseSizes(
        step,
        seed,
        _size(lr * p * s),
        _size(np.sqrt(2 * lr * p / n)),
        _size(lr * s),
        float(np.sqrt(2 * lr / n)),
        float(np.sqrt(2 * lr)),
    )


def _gradient(parts: Parts[Any], step: int) -> Array:
    """The gradient of the joint loss on a fresh batch, for the shared parameters."""
    losses = losses_of(parts, step)
    assert parts.reweighter is not None
    assert losses.main is not None
    weights = parts.reweighter.weights
    parts.network.zero_grad()
    torch.stack([losses.main, *(weights[name] * loss for name, loss in losses.aux.items())]).sum().backward()
    parameters = [p for p in parts.network.trunk.parameters() if p.grad is not None]
    return np.concatenate([p.grad.double().numpy().ravel() for p in parameters if p.grad is not None])


def _preconditioner(parts: Parts[Any]) -> Array:
    """Adam's P, 1 / (sqrt(v) + eps), for the same parameters."""
    group, found = parts.optimizer.param_groups[0], []
    for p in parts.network.trunk.parameters():
        if p.grad is not None:
            state = parts.optimizer.state[p]
            v = state["exp_avg_sq"].double() / (1 - group["betas"][1] ** float(state["step"]))
            found.append((1 / (v.sqrt() + group["eps"])).numpy().ravel())
    return np.concatenate(found)


def _size(values: Array) -> float:
    # Not the mean: a few parameters that hardly have a gradient have a huge P.
    return float(np.median(np.abs(values)))
