"""Pairs of images: is the second from the target, and are both of the same class?"""

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

GROUPS = 4
"""Two sources of the same class, a source and the target of the same class, then both with different classes."""
SOURCES_SAME, TARGET_SAME, SOURCES_DIFFERENT, TARGET_DIFFERENT = range(GROUPS)


def discriminator(num_features: int, hidden: int = 128) -> nn.Sequential:
    """Concatenated features of two images, [P, 2 F] -> logits of the four groups, [P, 4]."""
    return nn.Sequential(nn.Linear(2 * num_features, hidden), nn.ReLU(), nn.Linear(hidden, GROUPS))


def pair_groups(y: Tensor, is_target: Tensor, generator: torch.Generator) -> Tensor:
    """Pairs of images for each of the four groups, [4, P, 2].

    The first image of a pair is always from a source, the second one from a source or the target. Two images from
    sources are paired in both orders, so that the first image says nothing about the group. All groups get the number
    of pairs of the smallest group, usually the second, drawn without replacement; none if one of them is empty.

    >>> y, is_target = torch.tensor([0, 0, 1, 0]), torch.tensor([False, False, False, True])
    >>> pair_groups(y, is_target, torch.Generator().manual_seed(0))[1:, 0].tolist()  # sources 0, 1, 2; target 3
    [[1, 3], [1, 2], [2, 3]]

    Args:
        y: Labels, [B].
        is_target: Whether each image is from the target, [B].
        generator: Draws the pairs.
    """
    same = y.unsqueeze(1) == y
    first = ~is_target.unsqueeze(1)
    between_sources = first & ~is_target & ~torch.eye(len(y), dtype=torch.bool, device=y.device)
    masks = (between_sources & same, first & is_target & same, between_sources & ~same, first & is_target & ~same)
    groups = [mask.nonzero() for mask in masks]
    size = min(len(group) for group in groups)
    return torch.stack([group[_draw_some(len(group), size, generator).to(y.device)] for group in groups])


def discrimination(network: nn.Module, features: Tensor, pairs: Tensor) -> Tensor:
    """Mean cross-entropy of telling the four groups apart: the loss of the discriminator.

    Args:
        network: The discriminator.
        features: Features of all images, [B, F].
        pairs: Pairs from :func:`pair_groups`, [4, P, 2].
    """
    group = torch.arange(GROUPS, device=features.device).repeat_interleave(pairs.shape[1])
    return F.cross_entropy(network(_pair_features(features, pairs.flatten(0, 1))), group)


def confusion(network: nn.Module, features: Tensor, pairs: Tensor) -> Tensor:
    r"""How well the discriminator tells pairs with the target from pairs of sources: a loss of the features.

    .. math:: CE(D(G_2), \text{label of } G_1) + CE(D(G_4), \text{label of } G_3)

    Motiian et al., *Few-Shot Adversarial Domain Adaptation*, NeurIPS 2017. The parameters of the
    discriminator D are constants here and get no gradient.
    """
    constants = {name: parameter.detach() for name, parameter in network.named_parameters()}

    def confuse(group: int, label: int) -> Tensor:
        logits: Tensor = functional_call(network, constants, (_pair_features(features, pairs[group]),))
        return F.cross_entropy(logits, torch.full((len(logits),), label, device=logits.device))

    return confuse(TARGET_SAME, SOURCES_SAME) + confuse(TARGET_DIFFERENT, SOURCES_DIFFERENT)


def _pair_features(features: Tensor, pairs: Tensor) -> Tensor:
    """Features [P, 2 F] of pairs [P, 2]."""
    return features[pairs].flatten(1)


def _draw_some(count: int, size: int, generator: torch.Generator) -> Tensor:
    return torch.randperm(count, generator=generator, device=generator.device)[:size]
