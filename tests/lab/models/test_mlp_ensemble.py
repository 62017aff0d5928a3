"""Several perceptrons in one trunk against the same perceptrons one by one."""

import pytest
import torch
from torch.testing import assert_close

from arml.lab.models.mlp import mlp
from arml.lab.models.mlp_ensemble import mlp_ensemble, repeat_rows


def members(trunk, count, inputs, features):
    """The members as networks of their own."""
    found = []
    for number in range(count):
        own = mlp(inputs, features)
        for layer in ("linear1", "linear2"):
            packed = getattr(trunk, layer)
            getattr(own, layer).weight.data = packed.weight.data[number].T
            getattr(own, layer).bias.data = packed.bias.data[number, 0] + 0.1 * number
            packed.bias.data[number, 0] += 0.1 * number
        found.append(own)
    return found


def test_training_gives_every_member_its_rows_and_evaluation_the_mean():
    torch.manual_seed(0)
    trunk, x = mlp_ensemble(5, 4, 3), torch.randn(7, 5)
    own = members(trunk, 3, 5, 4)
    features = trunk(repeat_rows(x, 3))
    for number, member in enumerate(own):
        assert_close(features[number::3], member(x))
    assert_close(trunk.eval()(x), torch.stack([member(x) for member in own]).mean(dim=0))


def test_members_learn_from_their_own_rows_alone():
    trunk = mlp_ensemble(5, 4, 3)
    trunk(repeat_rows(torch.randn(7, 5), 3))[1::3].sum().backward()
    touched = trunk.linear1.weight.grad.flatten(1).abs().sum(dim=1) > 0
    assert touched.tolist() == [False, True, False]


def test_members_start_differently_and_as_a_single_network_does():
    torch.manual_seed(0)
    weight = mlp_ensemble(400, 64, 4).linear1.weight
    assert weight.std().item() == pytest.approx((2 / 400) ** 0.5, rel=0.02)
    assert not torch.equal(weight[0], weight[1])


def test_a_batch_that_was_not_repeated_is_refused():
    with pytest.raises(ValueError, match=r"should hold every row 3 times\. Got 7 rows"):
        mlp_ensemble(5, 4, 3)(torch.zeros(7, 5))
