"""The name of a network becomes a trunk, and pixels become what it takes."""

import re
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from arml.lab.bounds import check_network
from arml.lab.data.preprocess import ImageNet, Scale
from arml.lab.models.mlp import mlp
from arml.lab.models.mlp_ensemble import mlp_ensemble
from arml.lab.models.network import Trunk
from arml.lab.models.plain import plain
from arml.lab.models.resnet import resnet18
from arml.lab.models.small import small
from arml.lab.models.weights import load_weights
from arml.lab.models.wrn import wrn

IMAGE_NETWORKS = (
    "small-FEATURES such as small-32, plain-FEATURES (without BatchNorm), wrn-DEPTH-WIDTH such as wrn-28-2, resnet18"
)
TABLE_NETWORKS = "mlp-FEATURES such as mlp-64, mlp-FEATURESxMEMBERS such as mlp-64x8 (the average of 8 networks)"
_NAMES = re.compile(r"small-(N)|wrn-(N)-(N)|plain-(N)|mlp-(N)(?:x(N))?|(resnet18)".replace("N", r"[1-9]\d*"))


def make_trunk(name: str, example: torch.Size, *, bn_momentum: float, dropout: float = 0.0, weights: str = "") -> Trunk:
    """The trunk called ``name`` for examples of this shape: [C, H, W] or, for tables, [F].

    Args:
        name: such as ``"wrn-28-2"``.
        example: shape of one input.
        bn_momentum: how fast BatchNorm's running statistics follow.
        dropout: share of features dropped in training, for tables.
        weights: a file of weights to start from; empty: random ones.
    """
    trunk = _random_trunk(name, example, bn_momentum, dropout)
    if weights:
        load_weights(trunk, Path(weights))
    return trunk


def _random_trunk(name: str, example: torch.Size, bn_momentum: float, dropout: float) -> Trunk:
    match, is_table = _NAMES.fullmatch(name), len(example) == 1
    if not match or (match.group(5) is not None) != is_table:
        kind, known = ("rows of a table", TABLE_NETWORKS) if is_table else ("images", IMAGE_NETWORKS)
        raise ValueError(f"{name!r} is no network for {kind}. Known: {known}.")
    features, depth, width, plain_features, mlp_features, members = (int(found or 0) for found in match.groups()[:6])
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
