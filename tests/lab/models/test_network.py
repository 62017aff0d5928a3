"""Trunk and heads; passes that leave BatchNorm's statistics alone."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from arml.lab.models import Network, keep_statistics, small, wrn

EXACT = {"rtol": 0, "atol": 0}


def network_and_images():
    trunk = wrn(10, 1, 1, bn_momentum=0.1)
    return Network(trunk, trunk.num_features, {"class": 3}), torch.randn(6, 1, 8, 8)


def buffers(network):
    return {name: b.clone() for name, b in network.named_buffers()}


def test_the_class_head_gives_the_logits():
    network = Network(nn.Flatten(), 4, {"class": 3, "rotation": 4})
    x = torch.randn(2, 1, 2, 2)
    head = network.heads["class"]
    assert_close(network(x), x.flatten(1) @ head.weight.T + head.bias)
    assert_close(network.features(x), x.flatten(1))
    assert network.head("rotation", network.features(x)).shape == (2, 4)


def test_heads_start_from_glorot_with_zero_bias():
    head = Network(nn.Flatten(), 400, {"class": 100}).heads["class"]
    assert_close(head.weight.std(), torch.tensor((2 / 500) ** 0.5), rtol=0.02, atol=0)
    assert not head.bias.any()


def test_outputs_are_precise_whatever_the_inside_is():
    network, x = network_and_images()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert network.features(x).dtype == torch.bfloat16
        assert network(x).dtype == torch.float32
    assert network.bfloat16()(x.bfloat16()).dtype == torch.float32
    assert network.double()(x.double()).dtype == torch.float64


def test_errors_name_the_heads():
    with pytest.raises(ValueError, match=r"named 'class'.*Got rotation"):
        Network(nn.Flatten(), 4, {"rotation": 4})
    with pytest.raises(ValueError, match=r"no head 'jigsaw'.*class, rotation"):
        Network(nn.Flatten(), 4, {"class": 3, "rotation": 4}).head("jigsaw", torch.ones(1, 4))


@pytest.mark.parametrize("size", [8, 28])
def test_the_small_trunk_takes_digits_of_both_sizes(size):
    trunk = small()
    assert trunk(torch.randn(2, 1, size, size)).shape == (2, trunk.num_features)


def test_statistics_are_kept_and_the_loss_is_that_of_training():
    network, x = network_and_images()
    before = buffers(network)
    with keep_statistics(network):
        inside = network(x).square().mean()
    assert_close(buffers(network), before, **EXACT)
    assert_close(inside, network(x).square().mean(), **EXACT)
    after = buffers(network)
    assert all(not torch.equal(after[name], before[name]) for name in before), "outside they move"


def test_graphs_made_before_and_inside_can_be_differentiated_later():
    network, x = network_and_images()
    parameters = list(network.parameters())

    def gradient(loss):
        return torch.autograd.grad(loss, parameters)

    alone = [a + b for a, b in zip(gradient(network(x).sum()), gradient(network(-x).square().sum()), strict=True)]
    before = network(x).sum()
    with keep_statistics(network):
        inside = network(-x).square().sum()
    assert_close(gradient(before + inside), tuple(alone))


def test_statistics_move_again_after_an_error_and_after_nesting():
    network, x = network_and_images()
    with pytest.raises(ZeroDivisionError), keep_statistics(network):
        1 / 0  # noqa: B018
    before = buffers(network)
    with keep_statistics(network):
        with keep_statistics(network):
            network(x)
        network(x)
    assert_close(buffers(network), before, **EXACT)
    network(x)
    assert int(network.trunk.norm.num_batches_tracked) == 1


def test_layers_that_never_track_stay_that_way():
    layer = nn.BatchNorm1d(2, track_running_stats=False)
    with keep_statistics(layer):
        layer(torch.randn(4, 2))
    assert layer.track_running_stats is False


def test_evaluation_still_uses_running_statistics():
    network, x = network_and_images()
    network.eval()
    with keep_statistics(network):
        inside = network(x)
    assert_close(inside, network(x), **EXACT)
    assert_close(inside[:1], network(x[:1]))
