"""Expected loss, information, and regression."""

import re

import numpy as np
import pytest
from theory.made_worlds import mean_within, plane_world

from arml.theory import Gaussian, Regression, expected_loss, information_needed, labels_needed
from arml.theory.expected_loss import excess_loss, loss_after_training, loss_at, loss_without_prior
from arml.theory.information import summed_loss

ALPHA = [1.0, 0.5, 1.5]


def test_the_excess_loss_is_that_of_new_labels():
    world, theta, other = plane_world(), np.array([0.1, 0.2]), np.array([1.0, -0.5])
    labels = Gaussian(theta, world.noise).sample(40_000, np.random.default_rng(0))
    lost = Gaussian(theta, world.noise).log_density(labels) - Gaussian(other, world.noise).log_density(labels)
    assert mean_within(lost, excess_loss(world, theta, other))


def test_the_expected_loss_is_the_mean_over_tasks_and_labels():
    world, rng = plane_world(), np.random.default_rng(0)
    draws = [world.draw(3, rng) for _ in range(800)]
    losses = np.array([loss_after_training(world, theta, main, ALPHA) for theta, main in draws])
    prior = world.surrogate_prior(ALPHA)
    assert mean_within(losses, expected_loss(world, prior, 3))
    thetas = world.true_prior.sample(800, rng)
    assert mean_within(np.array([loss_at(world, prior, 3, theta) for theta in thetas]), expected_loss(world, prior, 3))


def test_without_a_prior_the_loss_is_half_the_parameters_per_label():
    world, flat = plane_world(), Gaussian([0, 0], 1e9 * np.eye(2))
    assert expected_loss(world, flat, 7) == pytest.approx(loss_without_prior(world, 7), rel=1e-6)
    assert loss_without_prior(world, 7) == pytest.approx(1 / 7)


def test_no_prior_is_better_than_the_true_one():
    world = plane_world()
    best = expected_loss(world, world.true_prior, 5)
    assert all(expected_loss(world, world.surrogate_prior(a), 5) > best for a in ([3, 0, 0], [0, 3, 0], ALPHA))


def test_labels_needed_is_the_first_number_that_is_enough():
    world = plane_world()
    for prior in (world.true_prior, world.surrogate_prior(ALPHA)):
        needed = labels_needed(world, prior, 0.02)
        assert expected_loss(world, prior, needed) <= 0.02 < expected_loss(world, prior, needed - 1)
    assert labels_needed(world, None, 0.1) == 10
    assert labels_needed(world, None, 1e-9) is None
    with pytest.raises(ValueError, match="should be a positive loss"):
        labels_needed(world, None, 0)


def test_information_is_the_mean_length_of_the_answer_in_the_code_of_the_prior():
    world = plane_world()
    prior = world.surrogate_prior(ALPHA)
    theta = world.true_prior.sample(20_000, np.random.default_rng(0))
    assert mean_within(-prior.log_density(theta), information_needed(world.true_prior, prior))


def test_the_summed_loss_is_that_of_predicting_labels_one_by_one():
    world, prior = plane_world(), plane_world().surrogate_prior(ALPHA)
    rng, lost = np.random.default_rng(0), []
    for _ in range(300):
        theta = world.true_prior.sample(1, rng)[0]
        mean, covariance, total = prior.mean, prior.covariance, 0.0
        for y in Gaussian(theta, world.noise).sample(3, rng):
            total -= float(Gaussian(mean, covariance + world.noise).log_density(y))
            total += float(Gaussian(theta, world.noise).log_density(y))
            gain = covariance @ np.linalg.inv(covariance + world.noise)
            mean, covariance = mean + gain @ (y - mean), covariance - gain @ covariance
            covariance = (covariance + covariance.T) / 2
        lost.append(total)
    assert mean_within(np.array(lost), summed_loss(world, prior, 3))


def test_labels_pay_back_exactly_the_kl_in_the_end():
    world, prior = plane_world(), plane_world().surrogate_prior(ALPHA)
    paid = [summed_loss(world, prior, n) - summed_loss(world, world.true_prior, n) for n in (1, 10, 1000, 1_000_000)]
    assert paid == sorted(paid)
    assert paid[-1] == pytest.approx(world.true_prior.kl(prior), rel=1e-4)


# Linear regression


def regression() -> Regression:
    return Regression([[0, 0], [0.1, 0], [1, 1], [2, -1]], [1, 2, 1, 1], [10, 100, 50, 20], [[2.0, 0.5], [0.5, 1.0]])


def test_the_error_of_a_regression_is_that_of_least_squares_on_real_examples():
    world, alpha, rng = regression(), np.array([0.5, 0.3, 0.1]), np.random.default_rng(0)
    root = np.linalg.cholesky(world.moments)
    designs = []
    for n in world.examples.astype(int):  # designs with exactly the moments n H
        q, _ = np.linalg.qr(rng.standard_normal((n, 2)))
        designs.append(q * np.sqrt(n) @ root.T)
    weights = np.concatenate([[1.0], alpha]) / world.examples
    left = sum(w * x.T @ x for w, x in zip(weights, designs, strict=True))
    errors = []
    for _ in range(3000):
        right = np.zeros(2)
        for w, x, theta, sigma in zip(weights, designs, world.theta, world.sigma, strict=True):
            right += w * x.T @ (x @ theta + sigma * rng.standard_normal(len(x)))
        errors.append(world.excess(np.linalg.solve(left, right)))
    assert mean_within(np.array(errors), world.error(alpha))


def test_drawn_losses_lead_to_the_expected_error():
    world, alpha, rng = regression(), [0.5, 0.3, 0.1], np.random.default_rng(0)
    weights = np.array([1.0, *alpha]) / (1 + sum(alpha))
    errors = [world.excess(weights @ np.stack([loss.centre for loss in world.draw(rng)])) for _ in range(800)]
    assert mean_within(np.array(errors), world.error(alpha))


def test_the_best_weights_beat_their_neighbours():
    world, rng = regression(), np.random.default_rng(0)
    best, fixed = world.best_weights(), world.best_weights(3.0)
    assert fixed.sum() == pytest.approx(3)
    for _ in range(200):
        assert world.error(best) <= world.error(np.maximum(best + 0.3 * rng.normal(size=3), 0)) + 1e-9
        other = rng.dirichlet([1, 1, 1]) * 3
        assert world.error(fixed) <= world.error(other) + 1e-9


def test_one_unbiased_task_gets_the_weight_of_its_examples():
    """Without bias the best shares are in proportion to n / sigma^2: 30 against 10 examples means three times."""
    world = Regression([[1.0], [1.0]], [1.0, 1.0], [10, 30])
    assert world.best_weights()[0] == pytest.approx(3, rel=1e-4)


def test_far_tasks_get_almost_nothing():
    world = Regression([[0.0], [50.0]], [1.0, 1.0], [10, 100])
    assert world.best_weights()[0] < 1e-3


def test_a_regression_with_missing_numbers_is_refused():
    with pytest.raises(ValueError, match=re.escape("Got shapes (2, 1), (1,) and (2,)")):
        Regression([[0.0], [1.0]], [1.0], [10, 10])
    with pytest.raises(ValueError, match="`examples` at least 1"):
        Regression([[0.0], [1.0]], [1.0, 1.0], [10, 0])
