import numpy as np
import pytest

from arml.theory import Quadratic
from arml.theory.failures import minibatch, misleading, units, vanishing
from arml.theory.failures.contenders import AGREEMENT, EQUAL, FADING, GATED, PAPER, SCALE_FREE, main_only
from arml.theory.failures.training import train


def test_training_ends_at_the_lowest_point_of_the_weighted_sum():
    losses = [Quadratic([1.0, 0.0], np.eye(2)), Quadratic([0.0, 3.0], np.diag([2.0, 1.0]))]
    # Equal weights: (1 + 0) / 3 and (0 + 3) / 2.
    np.testing.assert_allclose(train(losses, EQUAL).theta, [1 / 3, 1.5], atol=1e-6)
    np.testing.assert_allclose(train(losses, main_only(1)).theta, [1.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(train(losses, FADING).theta, [1.0, 0.0], atol=1e-2)


def test_where_all_tasks_mislead_no_fixed_sum_reaches_the_planted_truth():
    world = misleading.make_world(2.0)
    best, fixed, alone = (world.error(alpha) for alpha in (world.best_weights(), world.best_weights(3.0), [0.0] * 3))
    assert best < alone < fixed


@pytest.mark.slow
def test_methods_that_can_let_go_do_where_all_tasks_mislead():
    found = misleading.sweep_distances([2.0], 3, 0)
    means = {name: values[0].mean for name, values in found.measured.items()}
    for contender in (GATED, FADING, AGREEMENT):
        assert means[contender.name] < 0.6 < means[PAPER.name]
    # The exact error of equal weights, and that of training with them.
    exact = misleading.make_world(2.0).error([1.0] * 3)
    assert means[EQUAL.name] == pytest.approx(exact, rel=0.2)


def test_at_the_lowest_point_armls_slope_has_no_main_task_in_it():
    rng = np.random.default_rng(0)
    for _ in range(20):
        roots = rng.normal(size=(4, 3, 3))
        losses = [Quadratic(rng.normal(size=3), root @ root.T) for root in roots]
        slope, other = vanishing.slope_at_rest(losses, rng.dirichlet([1, 1, 1]) * 3)
        np.testing.assert_allclose(slope, other, rtol=1e-6, atol=1e-9)


def test_weight_flows_to_the_flat_task():
    _, losses = vanishing.make_losses(np.random.default_rng(0))
    path = train(losses, SCALE_FREE, steps=120, start=[-3.0, -2.0], every=2).path
    assert path[-1, 0] < 0.7 < path[0, 0]


def test_the_scale_free_step_does_not_see_a_factor_on_all_losses():
    losses = units.make_world().draw(np.random.default_rng(0))
    small = [loss.times(0.01) for loss in losses]
    paths = [train(given, SCALE_FREE, steps=60).path for given in (losses, small)]
    np.testing.assert_allclose(*paths, atol=1e-6)
    plain = train(small, PAPER, steps=60).path
    np.testing.assert_allclose(plain, 1.0, atol=0.01)  # the weights of the paper's step do not move


def test_the_biased_objective_is_the_mean_over_noisy_gradients():
    rng, alpha, s = np.random.default_rng(0), np.array([1.4, 0.6]), np.array([0.3, 1.0, 0.5])
    noisy = minibatch.GRADIENTS + s[:, None] * rng.standard_normal((40_000, 3, 2))
    squared = (np.tensordot(noisy, [1, *-alpha], ([1], [0])) ** 2).sum(1)
    expected = minibatch.biased_objective(minibatch.GRADIENTS, 2 * s**2, alpha)
    assert abs(squared.mean() - expected) < 4 * squared.std() / 200


def test_biased_weights_have_a_closed_form_for_two_tasks():
    """With a = g_1 - g_2, b = g_0 - 2 g_2 and weights (x, 2 - x): x = (<a, b> + 2 s_2^2) / (|a|^2 + s_1^2 + s_2^2)."""
    (g0, g1, g2), s1, s2 = minibatch.GRADIENTS, 0.5, 0.2
    a, b = g1 - g2, g0 - 2 * g2
    x = (a @ b + 2 * s2) / (a @ a + s1 + s2)
    assert minibatch.biased_weights(minibatch.GRADIENTS, [9.0, s1, s2])[0] == pytest.approx(x, abs=1e-5)


def test_real_updates_on_noisy_gradients_find_the_biased_weights():
    found = minibatch.sweep_noise([0.5], 150, 0)
    assert found.measured["ARML"][0] == pytest.approx(found.expected[0], abs=0.25)
    assert found.expected[0] < found.without_noise - 0.5
