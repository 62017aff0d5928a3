"""Where a name becomes an object: what all settings have in common."""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.optim import SGD, Adam, Optimizer

from arml.convergence import Convergence
from arml.lab.data.preprocess import ImageNet, Scale
from arml.lab.models.mlp import mlp
from arml.lab.models.network import Network, Trunk
from arml.lab.models.plain import plain
from arml.lab.models.resnet import resnet18
from arml.lab.models.small import small
from arml.lab.models.weights import load_weights
from arml.lab.models.wrn import wrn
from arml.lab.run import Run
from arml.langevin import Langevin
from arml.methods import ARML, OLAUX, AdaLoss, CosineSim, Fixed, GatedARML, GradNorm, Method, Uniform
from arml.reweighter import Reweighter
from arml.schedule import Growing

T = TypeVar("T")


def _grid(first: float, trunk: Trunk) -> Fixed:
    """Weights of two auxiliary tasks."""
    del trunk
    return Fixed((first, 2 - first))


METHODS: dict[str, Callable[[Trunk], Method[Any]]] = {
    "uniform": lambda _: Uniform(),
    "adaloss": lambda _: AdaLoss(),
    "gradnorm": lambda trunk: GradNorm(layer=trunk.last_layer),
    "cosine_sim": lambda _: CosineSim(),
    "ol_aux": lambda _: OLAUX(),
    "arml": lambda _: ARML(),
    "arml_full": lambda _: ARML(),
    "gated_arml": lambda _: GatedARML(),
    **{f"grid-{first:g}": partial(_grid, first) for first in (0, 0.5, 1, 1.5, 2)},
}

TWO_STAGES = {"arml_full"}
"""Methods that sample with noise until the weights have converged, and keep them from then on."""

IMAGE_NETWORKS = (
    "small-FEATURES such as small-32, plain-FEATURES (without BatchNorm), wrn-DEPTH-WIDTH such as wrn-28-2, resnet18"
)


def choose(table: dict[str, T], name: str, what: str) -> T:
    """The entry of ``table``, or an error that lists what there is."""
    if name not in table:
        raise ValueError(f"Unknown {what} {name!r}. Known: {', '.join(sorted(table))}.")
    return table[name]


def stream(seed: int, number: int) -> int:
    """The seed of one kind of draw: each kind has a stream of its own."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


def trunk_of(run: Run, example: torch.Size, *, dropout: float = 0.0) -> Trunk:
    """The trunk named by ``run.network``, for examples of this shape: [C, H, W] or, for tables, [F]."""
    match = re.fullmatch(r"small-(N)|wrn-(N)-(N)|plain-(N)|mlp-(N)|(resnet18)".replace("N", r"[1-9]\d*"), run.network)
    if not match or (match.group(5) is not None) != (len(example) == 1):
        kind, known = (
            ("images", IMAGE_NETWORKS) if len(example) == 3 else ("rows of a table", "mlp-FEATURES such as mlp-64")
        )
        raise ValueError(f"{run.network!r} is no network for {kind}. Known: {known}.")
    features, depth, width, plain_features, mlp_features = (int(number or 0) for number in match.groups()[:5])
    if mlp_features:
        return mlp(example[0], mlp_features, dropout=dropout)
    if plain_features:
        return plain(example[0], example[-1], plain_features)
    if features:
        return small(example[0], features, bn_momentum=run.bn_momentum)
    if depth:
        return wrn(depth, width, example[0], bn_momentum=run.bn_momentum)
    return resnet18(example[0], bn_momentum=run.bn_momentum)


def digest(path: str) -> str:
    """A fingerprint of the file, so that runs on an earlier content of it are not taken for runs on this one."""
    if not path:
        return ""
    if not Path(path).is_file():
        raise ValueError(f"There is no file {path}.")
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def tree_digest(folder: str) -> str:
    """A fingerprint of all files below the folder: their names, sizes and times of change."""
    if not folder:
        return ""
    found = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    told = [(str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns) for path in found]
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


def start_from(weights: str, trunk: Trunk) -> None:
    """Loads the file ``weights`` into the trunk, if one is named."""
    if weights:
        load_weights(trunk, Path(weights))


def preprocess_of(weights: str, num_channels: int) -> Callable[[Tensor], Tensor]:
    """Pixels as the network takes them: as on ImageNet if it starts from weights learned there, else -1 to 1."""
    return ImageNet() if weights and num_channels == 3 else Scale()


def optimizer_of(run: Run, network: Network, lr: float) -> Optimizer:
    """Adam, or stochastic gradient descent with momentum."""
    if run.optimizer == "sgd":
        return SGD(network.parameters(), lr, momentum=run.momentum, weight_decay=run.weight_decay, fused=True)
    return Adam(network.parameters(), lr, weight_decay=run.weight_decay, fused=True)


def reweighter_of(run: Run, tasks: Sequence[str], trunk: Trunk, *, train_on_main: bool = True) -> Reweighter | None:
    """The method named by the run over ``tasks``; ``None`` if there are none."""
    if not tasks:
        return None
    if run.method.startswith("grid-") and len(tasks) != 2:
        raise ValueError(f"The grid search weighs two auxiliary tasks. Got {len(tasks)}: {', '.join(tasks)}.")
    method = choose(METHODS, run.method, "method")(trunk)
    if run.weight_lr is not None:
        method = _with_lr(method, run.weight_lr)
    rule = Convergence(run.window, tolerance=0.1) if run.method in TWO_STAGES else None
    return Reweighter(
        method,
        tasks,
        trunk,
        every=Growing(run.every) if run.growing else run.every,
        aux_scale=run.aux_scale,
        train_on_main=train_on_main,
        convergence=rule,
    )


def noise_of(
    run: Run, optimizer: Optimizer, network: Network, reweighter: Reweighter | None, *, num_examples: int
) -> Langevin | None:
    """Langevin noise on the trunk until the weights have converged, for methods that have two stages."""
    if run.method not in TWO_STAGES or reweighter is None:
        return None
    return Langevin(
        optimizer,
        num_examples,
        parameters=network.trunk.parameters(),
        temperature=run.temperature,
        until=lambda: reweighter.converged,
        seed=run.seed,
    )


def _with_lr(method: Method[Any], lr: float) -> Method[Any]:
    """ARML and OL_AUX step by inner products of gradients, which grow with K; GradNorm's step has no such scale."""
    if isinstance(method, GatedARML):
        return replace(method, arml=replace(method.arml, lr=lr))
    return replace(method, lr=lr) if isinstance(method, ARML | OLAUX) else method
