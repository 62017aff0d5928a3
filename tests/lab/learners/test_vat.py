"""The direction that virtual adversarial training finds."""

from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from arml.lab.data.augment import Augment
from arml.lab.learners import VAT, Batch, VATSettings
from arml.lab.learners.distances import entropy, kl
from arml.lab.learners.vat import RECIPE_XI, perturbation
from arml.lab.models import Network, keep_statistics, small, wrn

STILL = Augment(flip=False, shift=0, noise=0.0)


def confident(trunk, u):
    """A network that was fitted to random labels: its predictions depend on the image."""
    network = Network(trunk, trunk.num_features, {"class": 4})
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    labels = torch.arange(len(u)) % 4
    for _ in range(15):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(u), labels).backward()
        optimizer.step()
    return network


def lengths(r):
    return r.flatten(1).norm(dim=1)


def seeded():
    return torch.Generator().manual_seed(3)


@pytest.mark.parametrize("make", [lambda: small(num_features=16), lambda: wrn(10, 1, 1, bn_momentum=0.1)])
def test_it_changes_predictions_far_more_than_a_random_direction(make):
    u = torch.randn(24, 1, 8, 8)
    network = confident(make(), u)
    with keep_statistics(network), torch.no_grad():
        clean, r = perturbation(network, u, VATSettings(epsilon=0.5), seeded())
        assert_close(lengths(r), torch.full((24,), 0.5))
        adversarial = kl(clean, network(u + r)).mean()
        random = [
            kl(clean, network(u + 0.5 * d / lengths(d)[:, None, None, None])).mean()
            for d in (torch.randn_like(u) for _ in range(20))
        ]
    assert adversarial > 2 * max(random)


def test_it_is_the_direction_of_one_power_iteration():
    """H d with H = J^T (diag p - p p^T) J, for a network without BatchNorm, in float64."""
    network = Network(nn.Sequential(nn.Flatten(), nn.Linear(9, 6), nn.Tanh()), 6, {"class": 4}).double()
    u = torch.randn(5, 1, 3, 3, dtype=torch.float64)
    _, r = perturbation(network, u, VATSettings(epsilon=1.0, xi=1e-5), seeded())
    d = torch.randn(u.shape, generator=seeded()).double()
    for image, start, found in zip(u, d, r, strict=True):
        jacobian = torch.autograd.functional.jacobian(lambda v: network(v[None])[0], image).reshape(4, 9)
        p = network(image[None])[0].softmax(0).detach()
        expected = jacobian.T @ (p.diag() - p.outer(p)) @ jacobian @ start.flatten()
        assert_close(found.flatten(), expected / expected.norm(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("make", [lambda: small(num_features=16), lambda: wrn(10, 1, 1, bn_momentum=0.1)])
def test_in_float32_it_is_the_direction_of_float64(make):
    """The recipe's step is lost in rounding; ours computes what the formula says."""
    torch.manual_seed(0)
    u = torch.randn(24, 1, 8, 8)
    network = confident(make(), u)
    twin = deepcopy(network).double()

    def direction(network, u, xi):
        with keep_statistics(network):
            return perturbation(network, u, VATSettings(epsilon=1.0, xi=xi), seeded())[1].flatten(1).double()

    exact = direction(twin, u.double(), 1e-6)
    assert_close(direction(twin, u.double(), 1e-5), exact, rtol=0, atol=1e-3)  # the exact one does not depend on xi
    cosines = (direction(network, u, VATSettings().xi) * exact).sum(1)
    assert cosines.mean() > 0.99
    assert cosines.min() > 0.95
    assert (direction(network, u, RECIPE_XI) * exact).sum(1).mean() < 0.7


def test_an_image_that_nothing_depends_on_is_left_as_it_is():
    network = Network(nn.Flatten(), 4, {"class": 2}).double()
    network.heads["class"].weight.data.zero_()
    _, r = perturbation(network, torch.ones(2, 1, 2, 2, dtype=torch.float64), VATSettings(), seeded())
    assert_close(r, torch.zeros_like(r), rtol=0, atol=0)


def test_it_is_found_in_float32_under_autocast():
    u = torch.randn(8, 1, 8, 8)
    network = confident(small(num_features=16), u)
    batch = Batch(u, torch.arange(8) % 4, u)
    with keep_statistics(network):
        clean, r = perturbation(network, u, VATSettings(), seeded())
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert network.features(u).dtype == torch.bfloat16
            clean_half, r_half = perturbation(network, u, VATSettings(), seeded())
    assert r_half.dtype == torch.float32
    assert_close((clean_half, r_half), (clean, r), rtol=0, atol=0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        main, aux = VAT(VATSettings(entropy=0.06), STILL).losses(network, batch, 0, seeded())
    (main + sum(aux.values())).backward()
    assert all(p.grad.isfinite().all() for p in network.parameters())


@pytest.mark.parametrize("divergence", ["oliver", "miyato"])
def test_the_clean_prediction_is_a_constant(divergence):
    """The gradient is that of the perturbed pass alone."""
    network = Network(nn.Sequential(nn.Flatten(), nn.Linear(9, 6), nn.Tanh()), 6, {"class": 4}).double()
    u = torch.randn(5, 1, 3, 3, dtype=torch.float64)
    settings = VATSettings(epsilon=1.0, divergence=divergence, max_weight=1.0, ramp_steps=0)
    parameters = list(network.parameters())
    _, aux = VAT(settings, STILL).losses(network, Batch(u, torch.arange(5) % 4, u), 0, seeded())
    clean, r = perturbation(network, u, settings, seeded())
    p, q = network(u + r).softmax(1), clean.softmax(1)
    p, q = (p, q) if divergence == "oliver" else (q, p)
    expected = (p * (p / q).log()).sum(1).mean()
    assert_close(aux["adversarial"], expected)
    assert_close(torch.autograd.grad(aux["adversarial"], parameters), torch.autograd.grad(expected, parameters))


def test_kl_and_entropy_are_those_of_torch_s_distributions():
    a, b = torch.randn(2, 6, 5, dtype=torch.float64)
    p, q = torch.distributions.Categorical(logits=a), torch.distributions.Categorical(logits=b)
    assert_close(kl(a, b), torch.distributions.kl_divergence(p, q))
    assert_close(entropy(a), p.entropy())
