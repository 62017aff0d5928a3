import re

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal
from theory.made_worlds import mean_within

from arml.theory.gaussian import Gaussian, ImproperPriorError, Quadratic, normalise

P, Q = Gaussian([0.3], [[0.7]]), Gaussian([-1.0], [[2.0]])
WIDE = Gaussian([0.5, -1.0], [[1.0, 0.4], [0.4, 2.0]])
OTHER = Gaussian([0.0, 1.0], [[0.8, -0.2], [-0.2, 0.6]])


def integral(function):
    return quad(function, -14, 14, limit=200)[0]


def density(gaussian, theta):
    return float(np.exp(gaussian.log_density([theta])))


def test_densities_are_those_of_scipy():
    theta = np.array([[0.1, 0.2], [2.0, -3.0]])
    expected = multivariate_normal(WIDE.mean, WIDE.covariance).logpdf(theta)
    np.testing.assert_allclose(WIDE.log_density(theta), expected)


def test_the_score_is_the_slope_of_the_log_density():
    theta, h = np.array([0.4, -0.7]), 1e-6
    slopes = [(WIDE.log_density(theta + h * e) - WIDE.log_density(theta - h * e)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(WIDE.score(theta), slopes, rtol=1e-6)


def test_entropy_and_kl_by_quadrature():
    assert P.entropy() == pytest.approx(integral(lambda t: -density(P, t) * P.log_density([t])))
    expected = integral(lambda t: density(P, t) * (P.log_density([t]) - Q.log_density([t])))
    assert P.kl(Q) == pytest.approx(expected)
    assert P.kl(P) == pytest.approx(0)


def test_the_fisher_divergence_by_quadrature():
    expected = integral(lambda t: density(P, t) * float(P.score([t])[0] - Q.score([t])[0]) ** 2)
    assert P.fisher(Q) == pytest.approx(expected)


def test_divergences_in_two_dimensions_by_sampling():
    theta = WIDE.sample(20_000, np.random.default_rng(0))
    assert mean_within(WIDE.log_density(theta) - OTHER.log_density(theta), WIDE.kl(OTHER))
    assert mean_within(((WIDE.score(theta) - OTHER.score(theta)) ** 2).sum(1), WIDE.fisher(OTHER))


def test_samples_have_the_mean_and_covariance():
    theta = WIDE.sample(20_000, np.random.default_rng(1))
    np.testing.assert_allclose(theta.mean(0), WIDE.mean, atol=0.05)
    np.testing.assert_allclose(np.cov(theta.T), WIDE.covariance, atol=0.08)


def test_a_power_is_the_normalised_power_of_the_density():
    total = integral(lambda t: density(P, t) ** 2)
    assert density(P.power(2), 0.9) == pytest.approx(density(P, 0.9) ** 2 / total)


def test_quadratic_losses_are_negative_log_likelihoods():
    loss, theta = Quadratic.of(WIDE), np.array([[1.0, 2.0], [0.0, -1.0]])
    difference = loss.loss(theta) + WIDE.log_density(theta)
    assert difference[0] == pytest.approx(difference[1])
    np.testing.assert_allclose(loss.gradient(theta), -WIDE.score(theta))
    np.testing.assert_allclose(loss.times(3).gradient(theta), -3 * WIDE.score(theta))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Gaussian([0, 0], [[1, 2], [2, 1]]), "positive definite: every eigenvalue above 0. Its smallest is -1"),
        (lambda: Gaussian([0, 0], [[1, 2], [0, 1]]), "symmetric. Got [[1.0, 2.0], [0.0, 1.0]]"),
        (lambda: Gaussian([0, 0], [[1]]), "same number of parameters. Got 2 and 1"),
        (lambda: Gaussian([0, np.nan], np.eye(2)), "`mean` should be a list of finite numbers. Got [0, nan]"),
        (lambda: Gaussian([[0]], np.eye(1)), "`mean` should be a list of finite numbers. Got [[0]]"),
        (lambda: Gaussian([0], [[1, 0]]), "square matrix of finite numbers. Got shape (1, 2)"),
        (lambda: Quadratic([0, 0], [[1, 0], [0, -1]]), "no negative eigenvalue"),
        (lambda: P.kl(WIDE), "same number of parameters. Got 1 and 2"),
    ],
)
def test_bad_input_is_refused_with_what_was_given(make, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        make()


def test_a_flat_direction_has_no_distribution():
    with pytest.raises(ImproperPriorError, match=r"The prior is flat in some direction.*\[0.0, 1.0\]"):
        normalise(np.diag([1.0, 0.0]), np.zeros(2), "The prior")
