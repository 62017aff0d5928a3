import re

import numpy as np
import pytest
from scipy.integrate import quad
from theory.made_worlds import line_world, plane_world

from arml.methods._simplex import project_to_simplex
from arml.theory import Gaussian, ImproperPriorError, Quadratic, World, project
from arml.theory.checks import check_weights


def test_the_surrogate_prior_is_the_normalised_product_of_powers():
    world, alpha = line_world(), [0.5, 1.5]

    def product(theta):
        return float(np.exp(-sum(a * task.loss([theta]) for a, task in zip(alpha, world.tasks, strict=True))))

    total = quad(product, -20, 20)[0]
    assert float(np.exp(world.surrogate_prior(alpha).log_density([1.1]))) == pytest.approx(product(1.1) / total)


def test_the_joint_is_in_proportion_to_likelihood_times_prior():
    world, alpha = plane_world(), [1.0, 0.5, 1.5]
    main = world.likelihood(5, [0.4, 0.3])
    joint, prior = world.joint(main, alpha), world.surrogate_prior(alpha)
    theta = np.array([[0.0, 1.0], [2.0, -0.5]])
    constant = joint.log_density(theta) + main.loss(theta) - prior.log_density(theta)
    assert constant[0] == pytest.approx(constant[1])


def test_labels_are_drawn_around_parameters_from_the_true_prior():
    world, rng = plane_world(), np.random.default_rng(0)
    thetas, means = zip(
        *((theta, main.centre) for theta, main in (world.draw(4, rng) for _ in range(1000))), strict=True
    )
    np.testing.assert_allclose(np.cov(np.array(thetas).T), world.true_prior.covariance, atol=0.05)
    np.testing.assert_allclose(np.cov((np.array(means) - thetas).T), world.noise / 4, atol=0.15)


def test_the_projection_is_that_of_the_methods():
    import torch

    for v in np.random.default_rng(0).normal(size=(50, 4)) * 3:
        expected = project_to_simplex(torch.tensor(v), total=4.0).numpy()
        np.testing.assert_allclose(project(v, 4.0), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("alpha", "words"),
    [
        ([1.0], "one weight per auxiliary task, 2. Got shape (1,)"),
        ([1.0, 2.0], "sum to 2. Got [1.0, 2.0], with the sum 3"),
        ([-1.0, 3.0], "no negative weight and sum to 2. Got [-1.0, 3.0]"),
        ([np.nan, 2.0], "no negative weight and sum to 2. Got [nan, 2.0]"),
    ],
)
def test_weights_outside_the_simplex_are_refused(alpha, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        line_world().surrogate_prior(alpha)


def test_any_sum_can_be_allowed_by_naming_it():
    np.testing.assert_array_equal(check_weights([0.0, 0.0], 2, 0.0), [0, 0])


def test_an_improper_prior_is_refused():
    with pytest.raises(ImproperPriorError, match=r"surrogate prior with weights \[0.0, 0.0, 3.0\] is flat"):
        plane_world().surrogate_prior([0, 0, 3])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: World(Gaussian([0], [[1]]), [], [[1]]), "at least one auxiliary task"),
        (lambda: World(Gaussian([0], [[1]]), [Quadratic([0, 0], np.eye(2))], [[1]]), "`tasks[0]` should have the same"),
        (lambda: World(Gaussian([0], [[1]]), [Quadratic([0], [[1]])], [[-1]]), "`noise` should be positive definite"),
        (lambda: line_world().likelihood(0, [0.0]), "`labels` should be a whole number of at least 1. Got 0"),
        (lambda: line_world().likelihood(1, [0.0, 1.0]), "same number of parameters. Got 2 and 1"),
    ],
)
def test_bad_worlds_are_refused(make, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        make()
