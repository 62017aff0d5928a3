"""The multilayer perceptron for rows of a table."""

import pytest
import torch
from torch.testing import assert_close

from arml.lab.models import Network
from arml.lab.models.mlp import mlp


def test_the_forward_pass_written_out():
    trunk = mlp(5, 4, num_layers=3)
    for p in trunk.parameters():
        p.data.normal_()
    x = expected = torch.randn(7, 5)
    for layer in (trunk.linear1, trunk.linear2, trunk.linear3):
        expected = (expected @ layer.weight.T + layer.bias).clamp(min=0)
    assert_close(trunk(x), expected)


def test_one_layer_by_hand():
    trunk = mlp(2, 2, num_layers=1)
    trunk.linear1.weight.data = torch.tensor([[1.0, 2.0], [-1.0, 0.0]])
    trunk.linear1.bias.data = torch.tensor([0.5, 0.25])
    assert trunk(torch.tensor([[3.0, 4.0]])).tolist() == [[11.5, 0.0]]


def test_sizes_and_the_last_layer():
    trunk = mlp(103)
    assert sum(p.numel() for p in trunk.parameters()) == (103 * 64 + 64) + (64 * 64 + 64)
    assert trunk.num_features == 64
    assert trunk.get_submodule(trunk.last_layer) is trunk.linear2
    assert Network(trunk, trunk.num_features, {"class": 2})(torch.zeros(3, 103)).shape == (3, 2)


def test_the_mean_square_of_standardised_rows_stays_one():
    trunk = mlp(200, 2_000, num_layers=4)
    x = torch.randn(100, 200)
    for layer in trunk:
        x = layer(x)
    assert_close(x.square().mean(), torch.tensor(1.0), rtol=0.15, atol=0)
    assert not any(p.any() for name, p in trunk.named_parameters() if name.endswith("bias"))


def test_dropout_sets_a_share_to_zero_in_training_only():
    trunk = mlp(4, 1_000, num_layers=1, dropout=0.25)
    torch.nn.init.ones_(trunk.linear1.bias)
    torch.nn.init.zeros_(trunk.linear1.weight)
    x = torch.zeros(10, 4)
    assert float((trunk(x) == 0).float().mean()) == pytest.approx(0.25, abs=0.02)
    assert bool((trunk.eval()(x) == 1).all())
    assert bool((mlp(4, dropout=0.0)(x) == 0).all())


def test_a_row_does_not_depend_on_its_batch():
    trunk = mlp(6)
    x = torch.randn(8, 6)
    assert_close(trunk(x)[:1], trunk(x[:1]))


@pytest.mark.parametrize("name", ["num_inputs", "num_features", "num_layers"])
def test_impossible_sizes_are_refused(name):
    with pytest.raises(ValueError, match=rf"`{name}` should be at least 1. Got 0"):
        mlp(**({"num_inputs": 3} | {name: 0}))


@pytest.mark.parametrize("dropout", [-0.1, 1.0])
def test_impossible_dropout_is_refused(dropout):
    with pytest.raises(ValueError, match=rf"less than 1. Got {dropout}"):
        mlp(3, dropout=dropout)
