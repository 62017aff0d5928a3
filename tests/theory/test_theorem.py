import math
import re

import numpy as np
import pytest
from theory.made_worlds import line_world

from arml.theory import Cells, check_theorem, cut_into_cells, kl_to_truth, surrogate_objective
from arml.theory.counterexamples import furthest_task, three_cells, unequal_directions
from arml.theory.studies import pairs_of_weights, picture_bounds, random_cells
from arml.theory.theorem import dagger_bound, find_constants, last_step_as_printed, lower_bound, upper_bound
from arml.theory.world import Gaussian, Quadratic, World

THREE = Cells(
    [0.5, 1.0, 2.0], [0.0, 0.0, 0.0], [[math.log(2), 0.0, 0.0], [0.0, 0.0, math.log(3)]], [True, False, False]
)
"""Three cells; the labels say nothing, task 1 doubles the first cell, task 2 triples the last."""


def test_densities_a_person_can_check():
    # Uniform labels: 1 / 3.5 everywhere. alpha = (2, 0): 4, 1, 1 times volumes 0.5, 1, 2 is 5.
    np.testing.assert_allclose(THREE.main_density(), [1 / 3.5] * 3)
    np.testing.assert_allclose(THREE.prior([2.0, 0.0]), [0.8, 0.2, 0.2])
    assert THREE.kl([2.0, 0.0]) == pytest.approx(math.log(2 / 0.8))
    assert THREE.overlap([2.0, 0.0], inside=True) == pytest.approx(0.5 * 0.8 / 3.5)
    # p^J = p_alpha here, so f is -log 3.5 plus the entropy of p_alpha: 0.4 of mass in cell 1, 0.6 elsewhere.
    assert THREE.surrogate([2.0, 0.0]) == pytest.approx(-math.log(3.5) - 0.4 * math.log(0.8) - 0.6 * math.log(0.2))


def test_constants_a_person_can_check():
    constants = find_constants(THREE, np.array([[2.0, 0.0]]))
    assert constants.c1 == pytest.approx(math.log(0.5 / 3.5))
    assert constants.c2 == pytest.approx(1 / 3.5)
    assert constants.c3 == pytest.approx(3 / 3.5**2)
    assert constants.c4 == pytest.approx(3 * 0.2**2)
    assert constants.gamma1 == constants.gamma2 == pytest.approx(3 * 0.2 / 3.5)
    assert constants.c5 == pytest.approx(0.12 * (1 / 3.5) * (0.5 / 3.5))
    assert constants.c6 == pytest.approx(math.sqrt(3 / 3.5**2 * 0.12 * 7))
    # gamma = 6/35, C_5 = 0.12 / 3.5 / 7 = 0.0048980, C_6 = sqrt(0.2449 * 0.12 * 7) = 0.45356.
    assert constants.bound() == pytest.approx(2 * (6 / 35) ** 2 / 0.0048980 * math.log(0.45356 / (6 / 35)), rel=1e-4)
    # f_u at x = exp(-KL) = 0.4, z = 6/35: C_2 x = 4/35, so 0.4 inside and 0.6 outside.
    inside, outside = 0.4 * (math.log(1 / 7) - math.log(0.4)), 0.6 * math.log(3 / 3.5**2 / (6 / 35))
    assert float(upper_bound(constants, 0.4, 6 / 35)) == pytest.approx(inside + outside)
    assert float(lower_bound(constants, 0.4, 6 / 35)) == pytest.approx(inside - 0.6 * math.log(0.12 / (6 / 35)))


def test_cells_agree_with_the_closed_forms_of_a_normal_world():
    world, alpha = line_world(), np.array([0.8, 1.2])
    main = world.likelihood(3, [0.7])
    cells = cut_into_cells(world, main, 0.01)
    assert float(cells.surrogate(alpha)) == pytest.approx(surrogate_objective(world, main, alpha), rel=1e-3)
    narrow = World(Gaussian([0.0], [[1e-6]]), world.tasks, world.noise)
    # The uniform prior on a tiny S differs from a tiny normal one by its entropy alone.
    entropy = math.log(0.02)
    expected = kl_to_truth(narrow, alpha) + narrow.true_prior.entropy() - entropy
    assert float(cells.kl(alpha)) == pytest.approx(expected, rel=1e-3)


def test_densities_that_are_zero_in_floating_point_do_no_harm():
    world, alpha = line_world(), np.array([2.0, 0.0])
    main = world.likelihood(2000, [0.1])
    cells = cut_into_cells(world, main, 0.01, cells=20_001)
    assert cells.main_density().min() == 0
    assert float(cells.surrogate(alpha)) == pytest.approx(surrogate_objective(world, main, alpha), rel=1e-3)


def test_f_lies_between_its_bounds_in_every_random_world():
    rng, alphas = np.random.default_rng(0), pairs_of_weights(11)
    for _ in range(60):
        cells = random_cells(rng)
        constants, closeness = find_constants(cells, alphas), np.exp(-cells.kl(alphas))
        outside, f = cells.overlap(alphas, inside=False), cells.surrogate(alphas)
        assert (lower_bound(constants, closeness, outside) <= f + 1e-9).all()
        assert (f <= upper_bound(constants, closeness, outside) + 1e-9).all()


def test_the_theorem_holds_wherever_it_applies_and_is_of_first_order():
    rng, alphas = np.random.default_rng(1), pairs_of_weights(21)
    checks = [check_theorem(random_cells(rng), alphas) for _ in range(250)]
    applying = [check for check in checks if check.applies]
    assert len(applying) > 5
    assert all(check.holds for check in applying)
    assert all(check.constants.bound() >= check.constants.least_bound() for check in applying)
    assert any(not check.holds for check in checks), "without its assumptions the bound does break"


def test_the_first_assumption_fails_where_s_is_large():
    world = line_world()
    main = world.likelihood(3, [0.7])
    assert check_theorem(cut_into_cells(world, main, 1e-4), pairs_of_weights(5)).flat
    assert not check_theorem(cut_into_cells(world, main, 1.0), pairs_of_weights(5)).flat


def test_the_printed_last_step_is_false_and_the_repaired_one_holds():
    for a, b in ((0.5, 0.25), (0.9, 0.001), (0.1, 0.09)):
        left, right = last_step_as_printed(a, b)
        assert left > right
    rng, alphas = np.random.default_rng(2), pairs_of_weights(21)
    for _ in range(100):
        cells = random_cells(rng)
        f, kl = cells.surrogate(alphas), cells.kl(alphas)
        total = cells.overlap(alphas, inside=True) + cells.overlap(alphas, inside=False)
        dagger = float(kl[(f - np.log(total)).argmin()])
        assert dagger <= dagger_bound(find_constants(cells, alphas), float(kl[f.argmin()])) + 1e-9


def test_three_cells_break_the_printed_conclusion():
    found = three_cells()
    assert found.kl_hat == pytest.approx(0, abs=1e-3)
    assert found.kl_dagger == pytest.approx(16, abs=1e-3)
    assert found.allowance == pytest.approx(math.e, abs=1e-3)
    assert found.excess > 13


def test_fisher_and_kl_prefer_other_weights_where_directions_differ():
    """The mean of p_alpha is 2 - x, (2 - x) / 4 for a first weight x; the labels are at (1.6, 0), with precision 4."""
    found = unequal_directions()
    precision, label = np.array([2.0, 32.0]), np.array([1.6, 0.0])
    x = np.linspace(0, 2, 200_001)
    mean = np.stack([(2 - x), (2 - x) / 4], 1)
    away = 4 / (4 + precision) * (label - mean)  # from the mean of p_alpha to that of p^J
    assert found.by_kl == pytest.approx(x[(precision * away**2).sum(1).argmin()], abs=1e-3)
    assert found.by_fisher == pytest.approx(x[(precision**2 * away**2).sum(1).argmin()], abs=1e-3)
    assert abs(found.by_kl - found.by_fisher) > 0.3


def test_with_few_labels_the_surrogate_objective_prefers_the_far_task():
    for labels, prefers_far in ((1, True), (100, False)):
        tasks = [Quadratic([0.0], [[1.0]]), Quadratic([2.0], [[1.0]])]
        world = World(Gaussian([0.0], [[1.0]]), tasks, [[4.0]])
        main = world.likelihood(labels, [0.0])
        near, far = (surrogate_objective(world, main, alpha) for alpha in ([2.0, 0.0], [0.0, 2.0]))
        assert (far < near) == prefers_far
        assert far - near == pytest.approx(furthest_task(labels / 4, 2.0, 2.0))


def test_the_pictures_show_one_world_of_each_kind():
    assert picture_bounds(0, applies=True).check.applies
    assert not picture_bounds(0, applies=False).check.related


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Cells([1, 1], [0, 0, 0], [[0, 0]], [True, False]), "Got shapes (2,), (3,), (2,) and (1, 2)"),
        (lambda: Cells([1, 0], [0, 0], [[0, 0]], [True, False]), "`volumes` should be positive"),
        (lambda: Cells([1, 1], [0, 0], [[0, 0]], [True, True]), "some of the cells, not all"),
    ],
)
def test_cells_that_make_no_sense_are_refused(make, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        make()


def test_only_worlds_with_one_parameter_can_be_cut():
    from theory.made_worlds import plane_world

    world = plane_world()
    with pytest.raises(ValueError, match="one parameter can be cut into cells"):
        cut_into_cells(world, world.likelihood(1, [0, 0]), 0.1)
