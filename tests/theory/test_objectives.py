import numpy as np
import pytest
from scipy.integrate import quad
from theory.made_worlds import line_world, mean_within, plane_world

from arml.theory import kl_to_truth, score_objective, surrogate_objective
from arml.theory.answers import best_weights, find_answers, minimise_over_simplex, resting_weights
from arml.theory.objectives import arml_slope, main_density, mean_products

ALPHA = [0.8, 1.2]


def joint_mean(world, main, alpha, function):
    """The expectation under p^J, by quadrature of unnormalised densities."""

    def weight(theta):
        losses = [main.loss([theta]), *(a * t.loss([theta]) for a, t in zip(alpha, world.tasks, strict=True))]
        return float(np.exp(-sum(losses)))

    return quad(lambda t: weight(t) * function(t), -15, 15)[0] / quad(weight, -15, 15)[0]


def test_kl_to_the_truth_by_quadrature():
    world = line_world()
    truth, prior = world.true_prior, world.surrogate_prior(ALPHA)
    expected = quad(
        lambda t: float(np.exp(truth.log_density([t])) * (truth.log_density([t]) - prior.log_density([t]))), -12, 12
    )[0]
    assert kl_to_truth(world, ALPHA) == pytest.approx(expected)


def test_the_surrogate_objective_by_quadrature():
    world = line_world()
    main, prior = world.likelihood(3, [0.7]), world.surrogate_prior(ALPHA)
    likelihood = main_density(main)
    expected = joint_mean(world, main, ALPHA, lambda t: float(likelihood.log_density([t]) - prior.log_density([t])))
    assert surrogate_objective(world, main, ALPHA) == pytest.approx(expected)


def test_the_score_objective_by_quadrature_and_as_a_fisher_divergence():
    world = line_world()
    main = world.likelihood(3, [0.7])

    def squared(theta):
        auxiliary = sum(a * task.gradient([theta])[0] for a, task in zip(ALPHA, world.tasks, strict=True))
        return float(main.gradient([theta])[0] - auxiliary) ** 2

    assert score_objective(world, main, ALPHA) == pytest.approx(joint_mean(world, main, ALPHA, squared))
    fisher = world.joint(main, ALPHA).fisher(world.surrogate_prior(ALPHA).power(2))
    assert score_objective(world, main, ALPHA) == pytest.approx(fisher)


def test_objectives_in_two_dimensions_by_sampling():
    world, alpha = plane_world(), np.array([1.0, 0.5, 1.5])
    main = world.likelihood(4, [0.5, -0.5])
    joint, prior = world.joint(main, alpha), world.surrogate_prior(alpha)
    theta = joint.sample(20_000, np.random.default_rng(0))
    gradients = np.stack([loss.gradient(theta) for loss in (main, *world.tasks)])
    apart = gradients[0] - np.tensordot(alpha, gradients[1:], 1)
    assert mean_within((apart**2).sum(1), score_objective(world, main, alpha))
    assert mean_within(
        main_density(main).log_density(theta) - prior.log_density(theta), surrogate_objective(world, main, alpha)
    )
    products = mean_products(world, main, joint)
    assert all(mean_within((gradients[i] * gradients[j]).sum(1), products[i, j]) for i in range(4) for j in range(4))
    c = np.concatenate([[1.0], -alpha])
    assert c @ products @ c == pytest.approx(score_objective(world, main, alpha))


def test_armls_slope_is_that_of_the_squared_distance_at_a_fixed_joint():
    world, alpha, h = plane_world(), np.array([1.0, 0.5, 1.5]), 1e-6
    main = world.likelihood(4, [0.5, -0.5])
    products = mean_products(world, main, world.joint(main, alpha))

    def distance(weights):
        c = np.concatenate([[1.0], -weights])
        return c @ products @ c

    slopes = [(distance(alpha + h * e) - distance(alpha - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(arml_slope(world, main, alpha), slopes, rtol=1e-5)


def test_answers_are_no_worse_than_a_grid():
    world = plane_world()
    main = world.likelihood(16, [0.2, 0.1])
    answers = find_answers(world, main)
    grid = [3 * np.array([a, b, 1 - a - b]) for a in np.linspace(0, 1, 13) for b in np.linspace(0, 1 - a, 13)]
    grid = [np.maximum(alpha, 0) for alpha in grid if alpha[2] < 2.99]
    assert kl_to_truth(world, answers.star) <= min(kl_to_truth(world, alpha) for alpha in grid) + 1e-9
    assert (
        surrogate_objective(world, main, answers.hat) <= min(surrogate_objective(world, main, a) for a in grid) + 1e-9
    )
    assert score_objective(world, main, answers.dagger) <= min(score_objective(world, main, a) for a in grid) + 1e-9


def test_at_rest_the_slope_points_nowhere_inside_the_simplex():
    world = plane_world()
    main = world.likelihood(16, [0.2, 0.1])
    alpha = resting_weights(world, main)
    slope = arml_slope(world, main, alpha)
    inside = alpha > 1e-4
    assert np.ptp(slope[inside]) < 1e-2 * np.abs(slope).max() + 1e-6
    assert (slope[~inside] >= slope[inside].min() - 1e-6).all()


def test_with_many_labels_every_rule_finds_the_task_that_is_right():
    world = line_world()
    answers = find_answers(world, world.likelihood(100, [0.2]))
    for alpha in answers:
        assert alpha[0] == pytest.approx(2.0, abs=0.05)


def test_a_function_with_two_lowest_points_is_searched_at_all_corners():
    found = minimise_over_simplex(lambda alpha: float(-np.sum(alpha**2) - 0.1 * alpha[1]), 3)
    np.testing.assert_allclose(found, [0, 3, 0], atol=1e-9)


def test_the_best_weights_of_one_task_are_its_share():
    world = line_world()
    alone = type(world)(world.true_prior, world.tasks[:1], world.noise)
    np.testing.assert_array_equal(best_weights(alone), [1.0])
