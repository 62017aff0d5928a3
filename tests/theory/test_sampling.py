"""Langevin noise against closed forms, and ARML itself in a world."""

import numpy as np
import pytest

from arml.theory import Gaussian, resting_weights
from arml.theory.langevin_checks import energy_test, sample_by_training, stationary_covariance
from arml.theory.run_arml import run_arml
from arml.theory.studies import example_world

TARGET = Gaussian([1.0, -2.0], [[1.0, 0.3], [0.3, 0.5]])


@pytest.mark.parametrize(("noise", "hot"), [(0.0, 1.0), (3.0, 1.0), (0.0, 10.0)])
def test_the_stationary_covariance_is_the_limit_of_the_recursion(noise, hot):
    step, p, c = 0.3, TARGET.precision, np.zeros((2, 2))
    keep = np.eye(2) - step * p
    for _ in range(500):
        c = keep @ c @ keep.T + (2 * step * hot + step**2 * noise) * np.eye(2)
    np.testing.assert_allclose(stationary_covariance(TARGET, step, gradient_noise=noise, too_hot=hot), c, rtol=1e-9)


def test_short_steps_sample_from_the_target():
    np.testing.assert_allclose(stationary_covariance(TARGET, 1e-6), TARGET.covariance, rtol=1e-5)


@pytest.mark.parametrize("step", [0.0, 0.8, -1.0])
def test_steps_that_diverge_are_refused(step):
    with pytest.raises(ValueError, match="longer steps diverge"):
        stationary_covariance(TARGET, step)


@pytest.mark.parametrize(("step", "missing", "times"), [(0.05, False, 1.0), (0.4, False, 1.0), (0.05, True, 50.0)])
def test_training_with_noise_reaches_the_stationary_covariance(step, missing, times):
    found = sample_by_training(
        TARGET, step, chains=3000, steps=round(20 + 12 / step), num_examples=50, missing_n=missing
    )
    expected = stationary_covariance(TARGET, step, too_hot=times)
    np.testing.assert_allclose(np.cov(found.T), expected, atol=0.12 * expected.max())
    assert (np.abs(found.mean(0) - TARGET.mean) < 4 * np.sqrt(np.diag(expected) / 3000)).all()


def test_the_energy_test_tells_samples_apart_and_has_the_right_level():
    rng = np.random.default_rng(0)
    same = [energy_test(rng.normal(size=(40, 2)), rng.normal(size=(40, 2)), rng, permutations=39) for _ in range(60)]
    assert 0 <= np.mean([one.p_value <= 0.1 for one in same]) <= 0.25
    other = energy_test(rng.normal(size=(150, 2)), 2 * rng.normal(size=(150, 2)), rng)
    assert other.p_value <= 0.01


def test_the_energy_distance_is_the_mean_of_all_pairs():
    x, y = np.array([[0.0], [1.0]]), np.array([[3.0]])
    # 2 * mean(3, 2) - mean(0, 1, 1, 0) - 0
    assert energy_test(x, y, np.random.default_rng(0), permutations=1).distance == pytest.approx(4.5)


def test_arml_as_run_comes_to_rest_where_the_theory_says():
    world = example_world()
    main = world.likelihood(16, [0.3, -0.1])
    run = run_arml(world, main, chains=48, steps=250)
    np.testing.assert_allclose(run.alpha, resting_weights(world, main), atol=0.3)
    assert run.path.sum(1) == pytest.approx(3.0)
    joint = world.joint(main, run.alpha, total=run.alpha.sum())
    assert np.abs(run.samples.mean(0) - joint.mean).max() < 0.3
