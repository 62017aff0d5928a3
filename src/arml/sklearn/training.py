"""One fit of the estimators: networks that are trained together, and the weights they learn."""

from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, NamedTuple

import torch
from torch import Tensor

from arml.lab.catalogue import METHODS
from arml.lab.data.batches import RepeatedBatches, Sampler
from arml.lab.data.placement import Placement
from arml.lab.hardware import choose_device, random_state, set_random_state
from arml.lab.learners.joint_targets import JointTargets, MainTarget, no_augmentation
from arml.lab.models.mlp_ensemble import mlp_ensemble
from arml.lab.models.network import Network, Trunk
from arml.lab.tasks.attributes import Attributes
from arml.methods import Method
from arml.reweighter import Reweighter

METHOD_NAMES = tuple(name for name, facts in METHODS.items() if not facts.two_stages)
"""Methods that may be given by name."""
REPORTS = 10
"""Lines per fit with ``verbose``."""


class Settings(NamedTuple):
    """How a network is trained; the fields are those of the estimators."""

    method: Method[Any] | str | None
    hidden: int
    layers: int
    networks: int
    dropout: float
    steps: int
    batch_size: int
    lr: float
    weight_decay: float
    every: int | None
    aux_scale: float
    device: str | None
    verbose: int


class Fitted(NamedTuple):
    """The result of one fit."""

    network: Network
    weights: dict[str, float]
    """The final weight of each auxiliary target."""
    path: list[list[float]]
    """The weights over training."""


def train(settings: Settings, x: Tensor, main: Attributes, others: Attributes | None, seed: int, title: str) -> Fitted:
    """Trains the networks of one fit from the rows ``x`` [N, F]; ``title`` names the fit in printed lines."""
    learner = MainTarget(main, no_augmentation) if others is None else JointTargets(main, others, no_augmentation)
    device = choose_device(settings.device or "cpu")
    network = _make_network(settings, x.shape[1], {"class": main.num_outputs, **learner.heads}, seed).to(device)
    reweighter = _make_reweighter(settings, network, learner.tasks)
    optimizer = torch.optim.AdamW(network.parameters(), lr=settings.lr, weight_decay=settings.weight_decay)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0, total_iters=settings.steps)
    batches, generator, path = _make_batches(settings, x, main, others, seed, device), torch.Generator(), []
    with _seed_dropout(device, seed):
        for step in range(settings.steps):
            loss, aux = learner.losses(network, batches.next(), step, generator)
            joint = loss if reweighter is None else reweighter(loss, aux)
            optimizer.zero_grad()
            joint.backward()
            optimizer.step()
            schedule.step()
            if reweighter is not None and step % (settings.every or 10) == 0:
                path.append(list(reweighter.weights.values()))
            if settings.verbose and (step + 1) % max(1, settings.steps // REPORTS) == 0:
                weights = {} if reweighter is None else reweighter.weights
                _print_progress(title, step + 1, settings.steps, float(loss.detach()), weights)
    # On the CPU, so that a pickle loads anywhere; in double precision, so that the prediction for a row does not
    # depend on the other rows of its batch.
    return Fitted(network.cpu().double().eval(), {} if reweighter is None else reweighter.weights, path)


@contextmanager
def _seed_dropout(device: torch.device, seed: int) -> Iterator[None]:
    """Inside, dropout draws from ``seed``; the random state of the caller is as before afterwards."""
    there = random_state(device)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        if there is None:
            yield
            return
        torch.get_device_module(device).manual_seed(seed)
        try:
            yield
        finally:
            set_random_state(device, there)


def _print_progress(title: str, step: int, steps: int, loss: float, weights: dict[str, float]) -> None:
    shares = ", ".join(f"{name} {weight:.2f}" for name, weight in weights.items())
    line = f"{title}step {step} of {steps}: main loss {loss:.4f}" + (f"; weights {shares}" if shares else "")
    print(line)  # noqa: T201 -- as scikit-learn's own estimators do with `verbose`


def choose_method(method: Method[Any] | str | None, trunk: Trunk) -> Method[Any] | None:
    """The method itself, or the one of this name."""
    if not isinstance(method, str):
        return method
    if method not in METHOD_NAMES:
        near = get_close_matches(method, METHOD_NAMES)
        meant = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise ValueError(f"Unknown `method` {method!r}.{meant} Known: {', '.join(METHOD_NAMES)}.")
    return METHODS[method].make(trunk)


def _make_network(settings: Settings, num_inputs: int, heads: dict[str, int], seed: int) -> Network:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        trunk = mlp_ensemble(
            num_inputs, settings.hidden, settings.networks, num_layers=settings.layers, dropout=settings.dropout
        )
        return Network(trunk, settings.hidden, heads)


def _make_reweighter(settings: Settings, network: Network, tasks: tuple[str, ...]) -> Reweighter | None:
    trunk = network.trunk
    assert isinstance(trunk, Trunk)
    method = choose_method(settings.method, trunk)
    if not tasks:
        return None
    return Reweighter(method, tasks, trunk, every=settings.every, aux_scale=settings.aux_scale)


def _make_batches(
    settings: Settings, x: Tensor, main: Attributes, others: Attributes | None, seed: int, device: torch.device
) -> RepeatedBatches:
    """Rows with a main label and rows with any auxiliary label; without auxiliary targets the latter are unused."""
    second = main if others is None else others
    pools = [(~targets.labels.isnan()).any(dim=1).nonzero().flatten() for targets in (main, second)]
    first, more = (Sampler(pool, min(settings.batch_size, len(pool)), seed + i) for i, pool in enumerate(pools))
    batches = RepeatedBatches(
        x,
        main.labels[:, 0],
        second.labels,
        times=settings.networks,
        main=first,
        aux=more,
        preprocess=lambda rows: rows,
    )
    batches.placement = Placement(device)
    return batches
