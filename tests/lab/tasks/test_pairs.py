"""The four groups of pairs, and what discriminator and features learn from them."""

import math

import pytest
import torch
from torch import nn, tensor
from torch.nn import functional as F
from torch.testing import assert_close

from arml.lab.tasks import confusion, discrimination, pair_groups
from arml.lab.tasks.pairs import discriminator


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


Y = tensor([0, 1, 0, 0, 1, 1])
IS_TARGET = tensor([True, True, False, False, False, False])
BY_HAND = [
    {(2, 3), (3, 2), (4, 5), (5, 4)},
    {(2, 0), (3, 0), (4, 1), (5, 1)},
    {(2, 4), (2, 5), (3, 4), (3, 5), (4, 2), (5, 2), (4, 3), (5, 3)},
    {(2, 1), (3, 1), (4, 0), (5, 0)},
]


def test_the_groups_by_hand():
    """Images 0 and 1 are the target's; 2 and 3 are of class 0, 4 and 5 of class 1."""
    seen = [set() for _ in BY_HAND]
    for seed in range(20):
        groups = pair_groups(Y, IS_TARGET, seeded(seed))
        assert groups.shape == (4, 4, 2), "as many as in the second group"
        for group, pairs, allowed in zip(groups.tolist(), seen, BY_HAND, strict=True):
            assert len({*map(tuple, group)}) == 4, "no pair twice"
            assert {*map(tuple, group)} <= allowed
            pairs.update(map(tuple, group))
    assert seen == BY_HAND, "every pair is drawn at some time"


@pytest.mark.parametrize(
    ("y", "is_target"),
    [
        ([0, 0, 1], [False, False, False]),  # no target
        ([0, 1, 1], [True, False, False]),  # no source of the target's class
        ([0, 0, 0, 0], [True, False, False, False]),  # one class
    ],
)
def test_without_one_group_there_are_no_pairs(y, is_target):
    assert pair_groups(tensor(y), tensor(is_target), seeded()).shape == (4, 0, 2)


class Fixed(nn.Module):
    """Logits that do not depend on the pairs, but through a factor of 1."""

    def __init__(self, *odds):
        super().__init__()
        self.log_odds = nn.Parameter(tensor(odds, dtype=torch.float64).log())

    def forward(self, pairs):
        return self.log_odds.expand(len(pairs), -1) + 0 * pairs.sum(dim=1, keepdim=True)


def test_losses_by_hand():
    """Probabilities 1/2, 1/8, 1/4, 1/8 of the groups."""
    network, features = Fixed(4, 1, 2, 1), torch.randn(6, 3, dtype=torch.float64)
    pairs = pair_groups(Y, IS_TARGET, seeded())
    expected = (math.log(2) + math.log(8) + math.log(4) + math.log(8)) / 4
    assert_close(discrimination(network, features, pairs).item(), expected)
    # Pairs with the target are to be taken for the first and the third group, of the same and of different classes.
    assert_close(confusion(network, features, pairs).item(), math.log(2) + math.log(4))


def test_both_images_are_seen_in_their_order():
    network = discriminator(3).double()
    features = torch.randn(6, 3, dtype=torch.float64)
    pairs = pair_groups(Y, IS_TARGET, seeded())

    def logits(group):
        return torch.stack([network(torch.cat([features[i], features[j]])) for i, j in pairs[group].tolist()])

    rows = torch.cat([logits(group) for group in range(4)])
    assert_close(
        discrimination(network, features, pairs), F.cross_entropy(rows, tensor([0] * 4 + [1] * 4 + [2] * 4 + [3] * 4))
    )
    expected = F.cross_entropy(logits(1), tensor([0] * 4)) + F.cross_entropy(logits(3), tensor([2] * 4))
    assert_close(confusion(network, features, pairs), expected)


def test_confusion_teaches_the_features_and_not_the_discriminator():
    network, features = discriminator(3), torch.randn(6, 3, requires_grad=True)
    pairs = pair_groups(Y, IS_TARGET, seeded())
    confusion(network, features, pairs).backward()
    assert bool(features.grad.any())
    assert all(p.grad is None and p.requires_grad for p in network.parameters())
    discrimination(network, features.detach(), pairs).backward()
    assert all(p.grad is not None for p in network.parameters())


def test_the_groups_can_be_learned():
    """Features that tell class and domain: a discriminator that is right about all pairs exists and is found."""
    y, is_target = torch.arange(40) % 2, torch.arange(40) < 20
    features = torch.stack([y.float(), is_target.float()], dim=1)
    network, generator = discriminator(2, hidden=16), seeded()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.03)
    for _ in range(100):
        optimizer.zero_grad()
        loss = discrimination(network, features, pair_groups(y, is_target, generator))
        loss.backward()
        optimizer.step()
    assert loss < 0.1 < math.log(4)
