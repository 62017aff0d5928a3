"""A problem whose best weights are known: ARML must find them.

Main task ||theta - a||^2 / 2, auxiliary tasks ||theta - c_k||^2 / 2 with a = sum_k b_k c_k inside the hull of the c_k.
For given weights alpha, theta settles at the mean of a and the c_k, weighted by 1 and alpha (by alpha alone without the
main loss). There the gap g_0 - sum_k alpha_k g_k is a positive multiple of sum_k alpha_k c_k - K a. It vanishes at
alpha = K b, and only there, as the c_k are independent.
"""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import arml
from arml import Convergence, Langevin, Reweighter, project_to_simplex

B = torch.tensor([0.7, 0.3, 0.0], dtype=torch.float64)
C = torch.tensor([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, -1, 0]], dtype=torch.float64)
K, DIM = C.shape
A = B @ C
BEST = K * B
TASKS = ["near", "half", "away"]


class Planted(nn.Module):
    """Full batches, or mini-batches of noisy targets around a and the c_k."""

    def __init__(self, batch=None, noise=0.0):
        super().__init__()
        self.theta = nn.Parameter(torch.zeros(DIM, dtype=torch.float64))
        self.batch, self.noise, self.generator = batch, noise, torch.Generator().manual_seed(0)

    def loss(self, target):
        if self.batch is not None:
            draws = torch.randn(self.batch, DIM, generator=self.generator, dtype=torch.float64)
            target = target + self.noise * draws
        return (self.theta - target).square().sum(-1).mean() / 2

    def losses(self):
        return self.loss(A), {name: self.loss(c) for name, c in zip(TASKS, C, strict=True)}


def train(model, reweighter, steps, *, lr=0.1, num_examples=None):
    """Weights at every step; with ``num_examples``, by the full algorithm: noise until the weights have converged."""
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    if num_examples is not None:
        Langevin(optimizer, num_examples, until=lambda: reweighter.converged)
    history = []
    for _ in range(steps):
        loss = reweighter(*model.losses())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(list(reweighter.weights.values()))
    return torch.tensor(history, dtype=torch.float64)


def biased_optimum(noise_variance):
    """Where the expected update stands still with mini-batches: noise in g_k adds its variance times alpha_k."""
    alpha = torch.ones(K, dtype=torch.float64)
    for _ in range(1000):
        theta = (A + alpha @ C) / (1 + K)
        gap = (theta - A) - (K * theta - alpha @ C)
        slope = -2 * (theta - C) @ gap + 2 * alpha * noise_variance
        alpha = project_to_simplex(alpha - 0.05 * slope, K)
    return alpha


@pytest.mark.parametrize("train_on_main", [True, False])
@pytest.mark.parametrize(
    "method", [arml.ARML(lr=0.05), arml.ARML(lr=0.01, scale_free=True)], ids=["plain", "scale free"]
)
def test_simplified_algorithm_with_full_batches(method, train_on_main):
    model = Planted()
    reweighter = Reweighter(
        method, TASKS, model, every=1, train_on_main=train_on_main, convergence=Convergence(10, tolerance=1e-5)
    )
    history = train(model, reweighter, 450)
    assert_close(history[-50:].mean(0), BEST, atol=1e-3 if not method.scale_free else 1e-2, rtol=0)


@pytest.mark.parametrize("train_on_main", [True, False])
def test_full_algorithm_with_full_batches(train_on_main):
    """Noise until convergence, then plain optimisation with fixed weights, which ends at the joint minimum."""
    model = Planted()
    rule = Convergence(window=100, tolerance=0.01)
    reweighter = Reweighter(arml.ARML(lr=0.05), TASKS, model, every=1, train_on_main=train_on_main, convergence=rule)
    train(model, reweighter, 1000, num_examples=10**6)
    assert reweighter.converged
    found = torch.tensor(list(reweighter.weights.values()), dtype=torch.float64)
    assert_close(found, BEST, atol=1e-3, rtol=0)
    minimum = (train_on_main * A + found @ C) / (train_on_main + K)
    assert_close(model.theta.detach(), minimum, atol=1e-6, rtol=0)


@pytest.mark.long
@pytest.mark.slow
def test_full_algorithm_samples_from_the_joint_posterior_while_it_learns():
    """With N = 100 theta has variance 1 / (N (1 + K)) in every direction, and the weights are right on average."""
    model = Planted()
    reweighter = Reweighter(arml.ARML(lr=0.01), TASKS, model, every=1, convergence=None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    Langevin(optimizer, num_examples=100)
    samples, weights = [], []
    for _ in range(5000):
        loss = reweighter(*model.losses())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        samples.append(model.theta.detach().clone())
        weights.append(list(reweighter.weights.values()))
    off_plane = torch.stack(samples[1000:])[:, 3]
    assert float(off_plane.var()) == pytest.approx(1 / (100 * (1 + K)), rel=0.25)
    assert_close(torch.tensor(weights[1000:], dtype=torch.float64).mean(0), BEST, atol=0.1, rtol=0)


@pytest.mark.parametrize("algorithm", ["simplified", pytest.param("full", marks=pytest.mark.slow)])
def test_mini_batches_end_where_their_noise_says(algorithm):
    """Gradient noise of variance s^2 d / B in every task pulls the weights towards each other by a known amount."""
    batch, noise = 16, 0.7
    model = Planted(batch, noise)
    reweighter = Reweighter(arml.ARML(lr=0.005), TASKS, model, every=1, convergence=None)
    num_examples = 10**5 if algorithm == "full" else None
    history = train(model, reweighter, 1500, lr=0.02, num_examples=num_examples)
    expected = biased_optimum(noise**2 * DIM / batch)
    assert_close(history[750:].mean(0), expected, atol=0.06, rtol=0)
    assert (expected - BEST).abs().max() > 0.1  # the pull is there, and is what the test sees


def test_weights_learned_every_tenth_step_agree():
    model = Planted()
    reweighter = Reweighter(arml.ARML(lr=0.05), TASKS, model, every=10)
    history = train(model, reweighter, 1500)
    assert_close(history[-1], BEST, atol=2e-2, rtol=0)


class Signposts(Planted):
    """Auxiliary tasks that pull theta to given multiples of a."""

    def __init__(self, *multiples):
        super().__init__(batch=8, noise=0.5)
        self.multiples = dict(zip(TASKS, multiples, strict=True))

    def losses(self):
        return self.loss(A), {name: self.loss(multiple * A) for name, multiple in self.multiples.items()}


def distance_from_a(method, *multiples):
    """How far from the main optimum training ends, and the mean weights on the way, after the warm-up."""
    model = Signposts(*multiples)
    history = train(model, Reweighter(method, TASKS, model, every=1, convergence=None), 250, lr=0.01)
    return float((model.theta.detach() - A).norm() / A.norm()), history[30:60].mean(0)


def test_gated_arml_does_no_harm_when_every_task_misleads():
    far, weights = distance_from_a(arml.ARML(), -2, -2, -2)
    assert far > 2
    assert_close(weights.sum(), torch.tensor(3.0, dtype=torch.float64))
    near, weights = distance_from_a(arml.GatedARML(), -2, -2, -2)
    assert near < 0.4
    assert weights.sum() < 0.5


def test_gated_arml_keeps_the_task_that_helps_when_the_others_mislead():
    far, _ = distance_from_a(arml.Uniform(), 1, -2, -2)
    assert far > 1
    near, weights = distance_from_a(arml.GatedARML(), 1, -2, -2)
    assert near < 0.4
    assert weights[0] > 10 * weights[1:].sum()


def test_gated_arml_keeps_the_gain_when_every_task_helps():
    near, weights = distance_from_a(arml.GatedARML(), 1, 1, 1)
    assert near < 0.4
    assert weights.sum() > 2.5


@pytest.mark.parametrize(
    ("multiples", "least", "most"), [((-2, -2, -2), 0.0, 0.0), ((1, -2, -2), 0.9, 1.0), ((1, 1, 1), 0.9, 1.0)]
)
def test_agreement_does_no_harm_and_keeps_the_gain(multiples, least, most):
    """Tasks that mislead get nothing, those that help share a weight of 1; uniform weights end 2.3 and 1.5 away."""
    near, weights = distance_from_a(arml.Agreement(), *multiples)
    assert near < 0.2
    assert least <= weights.sum() <= most
    assert not weights[[multiple < 0 for multiple in multiples]].any()


FIND_THE_HELPER = [
    arml.ARML(),
    arml.GatedARML(),
    arml.OLAUX(),
    arml.CosineSim(),
    arml.WeightedCosineSim(),
    arml.TAWT(),
    arml.AutoLambda(),
    arml.DoGE(),
    arml.Agreement(),
]
DO_NOT_FIND_IT = {
    arml.GradNorm(): "it looks at the lengths and rates of auxiliary tasks only",
    arml.AdaLoss(): "it looks at losses only, and a misleading task may well have a small one",
    arml.DWA(): "it looks at losses only",
    arml.UncertaintyWeighting(): "it looks at losses only",
    arml.FAMO(): "it looks at losses only",
    arml.MetaBalance(): "it looks at lengths of gradients only",
    arml.PriPCGrad(): "it keeps auxiliary weights at 1, and its limit of the main weight leaves conflicts",
    arml.AuxiNash(): "every task keeps some bargaining power for thousands of updates",
}


@pytest.mark.parametrize("method", FIND_THE_HELPER, ids=repr)
def test_methods_that_compare_gradients_find_the_task_that_helps(method):
    near, weights = distance_from_a(method, 1, -2, -2)
    assert near < 0.45
    assert weights[0] > 5 * weights[1:].mean()


@pytest.mark.parametrize("method", DO_NOT_FIND_IT, ids=repr)
def test_the_others_do_not(method):
    """Not what a user wants, but what the methods do: uniform weights end 1.5 away."""
    near, _ = distance_from_a(method, 1, -2, -2)
    assert near > 0.5


def test_auxi_nash_gives_the_task_that_helps_the_largest_weight():
    _, weights = distance_from_a(arml.AuxiNash(), 1, -2, -2)
    assert weights[0] > 2 * weights[1:].max()


def test_pri_pcgrad_halves_the_harm():
    assert distance_from_a(arml.PriPCGrad(), -2, -2, -2)[0] < 0.6 * distance_from_a(arml.Uniform(), -2, -2, -2)[0]
