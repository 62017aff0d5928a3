"""Pairs of images: is the second of the target, and are both of one class?"""

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

GROUPS = 4
"""Two sources of one class, a source and the target of one class, then both again of different classes."""
SOURCES_SAME, TARGET_SAME, SOURCES_DIFFERENT, TARGET_DIFFERENT = range(GROUPS)


def discriminator(num_features: int, hidden: int = 128) -> nn.Sequential:
    """Features of two images side by side, [P, 2 F] -> logits of the four groups, [P, 4]."""
    return nn.Sequential(nn.Linear(2 * num_features, hidden), nn.ReLU(), nn.Linear(hidden, GROUPS))


def pair_groups(y: Tensor, is_target: Tensor, generator: torch.Generator) -> Tensor:
    """Pairs of images for each of the four groups, [4, P, 2].

    The first image of a pair is always of a source, the second one of a source or the target; both orders of two
    images of sources are pairs, so that first images say nothing about the group. All groups get as many pairs as the
    smallest has, commonly the second, drawn without repetition; none if one of them is empty.

    >>> y, is_target = torch.tensor([0, 0, 1, 0]), torch.tensor([False, False, False, True])
    >>> pair_groups(y, is_target, torch.Generator().manual_seed(0))[1:, 0].tolist()  # sources 0, 1, 2; target 3
    [[1, 3], [1, 2], [2, 3]]

    Args:
        y: labels, [B].
        is_target: whether each image is of the target, [B].
        generator: decides which pairs are taken.
    """
    same = y.unsqueeze(1) == y
    first = ~is_target.unsqueeze(1)
    between_sources = first & ~is_target & ~torch.eye(len(y), dtype=torch.bool, device=y.device)
    masks = (between_sources & same, first & is_target & same, between_sources & ~same, first & is_target & ~same)
    groups = [mask.nonzero() for mask in masks]
    size = min(len(group) for group in groups)
    return torch.stack([group[_some(len(group), size, generator).to(y.device)] for group in groups])


def discrimination(network: nn.Module, features: Tensor, pairs: Tensor) -> Tensor:
    """Mean cross-entropy of telling the four groups apart: what the discriminator learns.

    Args:
        network: the discriminator.
        features: of all images, [B, F].
        pairs: from :func:`pair_groups`, [4, P, 2].
    """
    group = torch.arange(GROUPS, device=features.device).repeat_interleave(pairs.shape[1])
    return F.cross_entropy(network(_side_by_side(features, pairs.flatten(0, 1))), group)


def confusion(network: nn.Module, features: Tensor, pairs: Tensor) -> Tensor:
    r"""How far pairs with the target are from being taken for pairs of sources: what the features learn.

    .. math:: CE(D(G_2), \text{label of } G_1) + CE(D(G_4), \text{label of } G_3)

    Motiian et al., *Few-Shot Adversarial Domain Adaptation*, NeurIPS 2017. The parameters of the
    discriminator D are constants here: they get no gradient.
    """
    constants = {name: parameter.detach() for name, parameter in network.named_parameters()}

    def taken_for(group: int, label: int) -> Tensor:
        logits: Tensor = functional_call(network, constants, (_side_by_side(features, pairs[group]),))
        return F.cross_entropy(logits, torch.full((len(logits),), label, device=logits.device))

    return taken_for(TARGET_SAME, SOURCES_SAME) + taken_for(TARGET_DIFFERENT, SOURCES_DIFFERENT)


def _side_by_side(features: Tensor, pairs: Tensor) -> Tensor:
    """Features [P, 2 F] of pairs [P, 2]."""
    return features[pairs].flatten(1)


def _some(count: int, size: int, generator: torch.Generator) -> Tensor:
    return torch.randperm(count, generator=generator, device=generator.device)[:size]
