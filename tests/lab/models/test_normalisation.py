"""A pass normalised by the statistics of another one."""

from copy import deepcopy

import pytest
import torch
from torch.testing import assert_close

from arml.lab.models import Network, resnet18, small
from arml.lab.models.normalisation import normalise_by, watch_statistics
from arml.lab.models.plain import plain

EXACT = {"rtol": 0, "atol": 0}


def small_network(dtype=torch.float64):
    return Network(small(num_features=8), 8, {"class": 3}).to(dtype)


def test_images_of_the_first_pass_come_out_as_they_did():
    network, x = small_network(), torch.randn(6, 1, 8, 8, dtype=torch.float64)
    with watch_statistics(network) as statistics:
        first = network(x)
    with normalise_by(statistics):
        assert_close(network(x), first)
        assert_close(network(x[2:3]), first[2:3])  # each image for itself


def test_it_is_the_network_of_the_test_once_the_running_statistics_have_arrived():
    """With momentum 1 they are those of the last pass, but for the divisor n - 1 of the variance."""
    network = small_network()
    x, other = torch.randn(400, 1, 8, 8, dtype=torch.float64), torch.randn(5, 1, 8, 8, dtype=torch.float64) + 1
    for layer in (network.trunk.layer1[1], network.trunk.layer2[1], network.trunk.layer3[1]):
        layer.momentum = 1.0
    with watch_statistics(network) as statistics:
        network(x)
    with normalise_by(statistics):
        found = network(other)
    assert_close(found, network.eval()(other), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("make", [lambda: small(3, 8), lambda: resnet18()])
def test_it_leaves_no_trace(make):
    network = Network(trunk := make(), trunk.num_features, {"class": 3})
    x, other = torch.randn(6, 3, 32, 32), torch.randn(2, 3, 32, 32)
    twin = deepcopy(network)
    with watch_statistics(network) as statistics:
        assert_close(network(x), twin(x), **EXACT)
    with normalise_by(statistics):
        network(other)
    assert_close(network.state_dict(), twin.state_dict(), **EXACT)
    assert all(layer.training for layer in network.modules())
    assert_close(network(other), twin(other), **EXACT)  # the hooks are gone


def test_gradients_reach_the_first_pass_and_the_length_of_weights_still_does_not_matter():
    """Statistics move with the parameters: a convolution before BatchNorm has no gradient along itself."""
    network, x = small_network(), torch.randn(6, 1, 8, 8, dtype=torch.float64)
    layer = network.trunk.layer2
    layer[1].eps = 1e-12
    with watch_statistics(network) as statistics:
        network(x)
    with normalise_by(statistics):
        loss = network(2 * x[:2] + 1).square().sum()
    weight = layer[0].weight.detach()
    (slope,) = torch.autograd.grad(loss, layer[0].weight)
    assert float(slope.norm()) > 1e-3
    assert abs(float((slope * weight).sum())) < 1e-6 * float(slope.norm() * weight.norm())


def test_a_network_without_batch_norm_has_nothing_to_borrow():
    network = Network(plain(1, 8, 8), 8, {"class": 3})
    x = torch.randn(2, 1, 8, 8)
    with watch_statistics(network) as statistics:
        first = network(x)
    assert statistics == {}
    with normalise_by(statistics):
        assert_close(network(x), first, **EXACT)


def test_statistics_that_nobody_needs_are_not_collected():
    network = small_network()
    with watch_statistics(network, needed=False) as statistics:
        network(torch.randn(2, 1, 8, 8, dtype=torch.float64))
    assert statistics == {}
