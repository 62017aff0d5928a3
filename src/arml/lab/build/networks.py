"""The name of a network becomes a trunk, and pixels become what it takes."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from arml.lab.bounds import check_network
from arml.lab.data.preprocess import ImageNet, Scale
from arml.lab.models.efficientnet import efficientnet_lite0
from arml.lab.models.frozen import Frozen, freeze_first, split_trunk
from arml.lab.models.mlp import mlp
from arml.lab.models.mlp_ensemble import mlp_ensemble
from arml.lab.models.network import Trunk
from arml.lab.models.plain import plain
from arml.lab.models.resnet import resnet18
from arml.lab.models.small import small
from arml.lab.models.weights import load_weights
from arml.lab.models.wrn import wrn
from arml.lab.run_kinds import Domains, MultiLabel

IMAGE_NETWORKS = (
    "small-FEATURES such as small-32, plain-FEATURES (without BatchNorm), wrn-DEPTH-WIDTH such as wrn-28-2, resnet18, "
    "efficientnet-lite0 (trained on ImageNet)"
)
TABLE_NETWORKS = "mlp-FEATURES such as mlp-64, mlp-FEATURESxMEMBERS such as mlp-64x8 (the average of 8 networks)"
PRETRAINED = "efficientnet-lite0"
_NAMES = re.compile(
    rf"small-(N)|wrn-(N)-(N)|plain-(N)|mlp-(N)(?:x(N))?|resnet18|{PRETRAINED}".replace("N", r"[1-9]\d*")
)


class Start(NamedTuple):
    """What a trunk starts from, and what of it is trained."""

    weights: str = ""
    """A file of weights; empty: random ones, or those that the network comes with."""
    freeze: int = 0
    """Number of first layers that are not trained."""
    cached: bool = False
    """Whether the inputs are outputs of the frozen layers: the trunk then begins after them."""


AS_IT_COMES = Start()
"""The network's own weights, all of them trained."""


def make_trunk(
    name: str, example: torch.Size, *, bn_momentum: float, dropout: float = 0.0, start: Start = AS_IT_COMES
) -> Trunk:
    """The trunk called ``name`` for examples of this shape: [C, H, W] or, for tables, [F].

    Args:
        name: such as ``"wrn-28-2"``.
        example: shape of one example.
        bn_momentum: how fast BatchNorm's running statistics follow.
        dropout: share of features dropped in training, for tables.
        start: initial weights, and which layers keep them.
    """
    trunk = _whole_trunk(name, example, bn_momentum, dropout)
    if start.weights:
        load_weights(trunk, Path(start.weights))
    if not start.freeze:
        return trunk
    return split_trunk(trunk, start.freeze)[1] if start.cached else freeze_first(trunk, start.freeze)


def make_frozen(name: str, example: torch.Size, start: Start) -> Frozen:
    """The first layers of the trunk that :func:`make_trunk` freezes."""
    return split_trunk(make_trunk(name, example, bn_momentum=0.1, start=Start(start.weights)), start.freeze)[0]


def choose_start(run: MultiLabel | Domains) -> Start:
    """As the run says."""
    return Start(run.weights, run.freeze, run.cache_features)


def check_start(network: str, start: Start) -> None:
    """Raises an error if layers are to be frozen that nobody has trained, or cached that are not frozen."""
    if start.freeze < 0:
        raise ValueError(f"--freeze is a number of layers, at least 0. Got {start.freeze}.")
    if start.cached and not start.freeze:
        raise ValueError("--cache-features keeps the outputs of frozen layers. Say how many with --freeze, such as 7.")
    if start.freeze and network != PRETRAINED and not start.weights:
        raise ValueError(
            f"--freeze {start.freeze} would keep random layers of {network}. Choose --network {PRETRAINED}, or "
            "start from trained weights with --weights."
        )


def _whole_trunk(name: str, example: torch.Size, bn_momentum: float, dropout: float) -> Trunk:
    match, is_table = _NAMES.fullmatch(name), len(example) == 1
    if not match or (match.group(5) is not None) != is_table or (name == PRETRAINED and example[0] != 3):
        kind, known = ("rows of a table", TABLE_NETWORKS) if is_table else ("images", IMAGE_NETWORKS)
        raise ValueError(f"{name!r} is no network for {kind}. Known: {known}.")
    features, depth, width, plain_features, mlp_features, members = (int(found or 0) for found in match.groups())
    check_network(name, features=max(features, width, plain_features, mlp_features), layers=depth)
    if members:
        return mlp_ensemble(example[0], mlp_features, members, dropout=dropout)
    if mlp_features:
        return mlp(example[0], mlp_features, dropout=dropout)
    if plain_features:
        return plain(example[0], example[-1], plain_features)
    if features:
        return small(example[0], features, bn_momentum=bn_momentum)
    if depth:
        return wrn(depth, width, example[0], bn_momentum=bn_momentum)
    if name == PRETRAINED:
        return efficientnet_lite0(bn_momentum=bn_momentum)
    return resnet18(example[0], bn_momentum=bn_momentum)


def choose_preprocess(weights: str, num_channels: int) -> Callable[[Tensor], Tensor]:
    """Pixels as the network takes them: as on ImageNet if it starts from weights learned there, else -1 to 1."""
    return ImageNet() if weights and num_channels == 3 else Scale()


def count_members(name: str) -> int:
    """The number of networks that are averaged.

    >>> count_members("mlp-64x8"), count_members("mlp-64")
    (8, 1)
    """
    match = _NAMES.fullmatch(name)
    return int(match.group(6) or 1) if match else 1
