"""What cannot be computed is refused with what was given and what is allowed, never answered with a number."""

import math
import re

import numpy as np
import pytest
from theory.made_worlds import line_world, plane_world

from arml.theory import (
    Cells,
    Gaussian,
    Quadratic,
    Regression,
    check_theorem,
    cut_into_cells,
    expected_loss,
    find_answers,
    labels_needed,
    project,
    score_objective,
    surrogate_objective,
)
from arml.theory.information import summed_loss
from arml.theory.langevin_checks import energy_test, sample_by_training
from arml.theory.objectives import arml_slope
from arml.theory.run_arml import run_arml

LINE, WIDE = line_world(), Gaussian([0, 0], np.eye(2))
MAIN, WIDE_MAIN = LINE.likelihood(3, [0.1]), Quadratic([0, 0], np.eye(2))
CELLS = Cells([1, 1, 1], [1, 0, 2], [[3, -2, -3], [-4, -4, 4]], [True, False, False])
RNG = np.random.default_rng(0)

NO_NUMBERS = [
    (lambda: Gaussian(["a"], [[1]]), "`mean` should be a list of finite numbers. Got ['a']"),
    (lambda: Gaussian([1j], [[1]]), "`mean` should be a list of finite numbers. Got [1j]"),
    (lambda: Gaussian([0, 0], [[1], [1, 2]]), "`covariance` should be a square matrix of finite numbers. Got [[1], [1"),
    (lambda: LINE.surrogate_prior("ab"), "`alpha` should be a list of finite numbers. Got 'ab'"),
    (lambda: project([1, "b"], 2), "`alpha` should be a list of finite numbers. Got [1, 'b']"),
    (lambda: Cells([1, 1], [math.nan, 0], [[0, 0]], [True, False]), "`main` and `tasks` should hold finite numbers"),
    (lambda: Regression([[0.0], [math.nan]], [1, 1], [10, 10]), "`theta` should hold finite numbers. Got [[0.0], [nan"),
]
OTHER_SIZES = [
    (lambda: LINE.joint(WIDE_MAIN, [1, 1]), "`main` and `true_prior` should have the same number of parameters. Got 2"),
    (lambda: score_objective(LINE, WIDE_MAIN, [1, 1]), "same number of parameters. Got 2 and 1"),
    (lambda: surrogate_objective(LINE, WIDE_MAIN, [1, 1]), "same number of parameters. Got 2 and 1"),
    (lambda: arml_slope(LINE, WIDE_MAIN, [1, 1]), "same number of parameters. Got 2 and 1"),
    (lambda: find_answers(LINE, WIDE_MAIN), "same number of parameters. Got 2 and 1"),
    (lambda: run_arml(LINE, WIDE_MAIN), "same number of parameters. Got 2 and 1"),
    (lambda: cut_into_cells(LINE, WIDE_MAIN, 0.1), "same number of parameters. Got 2 and 1"),
    (lambda: expected_loss(LINE, WIDE, 3), "`prior` and `true_prior` should have the same number of parameters. Got 2"),
    (lambda: labels_needed(LINE, WIDE, 0.1), "same number of parameters. Got 2 and 1"),
    (lambda: summed_loss(LINE, WIDE, 3), "same number of parameters. Got 2 and 1"),
    (lambda: LINE.true_prior.log_density([1, 2]), "`theta` should have 1 number in its last dimension. Got shape (2,)"),
    (lambda: WIDE.score([[1.0]]), "`theta` should have 2 numbers in its last dimension. Got shape (1, 1)"),
    (lambda: energy_test(np.zeros((3, 1)), np.zeros((3, 2)), RNG), "the same number of columns. Got shapes (3, 1) and"),
]
OUTSIDE = [
    (lambda: CELLS.kl([-1, 3]), "`alpha` should have no negative weight and sum to 2. Got [-1.0, 3.0]"),
    (lambda: LINE.surrogate_prior([[1, 1]]), "one weight per auxiliary task, 2. Got shape (1, 2)"),
    (lambda: CELLS.surrogate([[1, 1], [2, 2]]), "sum to 2. Got [2.0, 2.0], with the sum 4"),
    (lambda: CELLS.prior([1, 1, 1]), "one weight per auxiliary task, 2. Got shape (3,)"),
    (lambda: check_theorem(CELLS, [[1, 1], [5, 5]]), "sum to 2. Got [5.0, 5.0]"),
    (lambda: check_theorem(CELLS, [1, 1]), "`alphas` should be a list of weights, one row each. Got shape (2,)"),
    (
        lambda: check_theorem(CELLS, np.zeros((0, 2))),
        "`alphas` should be a list of weights, one row each. Got shape (0",
    ),
    (lambda: project([1, 2], -1), "`total` should be a finite number of at least 0. Got -1"),
    (lambda: project([1, 2], math.nan), "`total` should be a finite number of at least 0. Got nan"),
    (
        lambda: Regression([[0.0], [1]], [1, 1], [10, 10]).best_weights(-1),
        "`total` should be a finite number of at least 0. Got -1",
    ),
    (
        lambda: Regression([[0, 0], [1, 1]], [1, 1], [10, 10], [[1, 2], [2, 1]]),
        "`moments` should be positive definite: every eigenvalue above 0. Its smallest is -1",
    ),
]
COUNTS = [
    (lambda: LINE.likelihood("3", [0.1]), "`labels` should be a whole number of at least 1. Got '3'"),
    (lambda: LINE.likelihood(math.nan, [0.1]), "`labels` should be a whole number of at least 1. Got nan"),
    (lambda: LINE.draw(0, RNG), "`labels` should be a whole number of at least 1. Got 0"),
    (lambda: expected_loss(LINE, LINE.true_prior, -1), "`labels` should be a whole number of at least 1. Got -1"),
    (lambda: summed_loss(LINE, LINE.true_prior, 0), "`labels` should be a whole number of at least 1. Got 0"),
    (lambda: labels_needed(LINE, LINE.true_prior, math.nan), "`level` should be a positive loss"),
    (lambda: run_arml(LINE, MAIN, chains=0), "`chains` should be a whole number of at least 1. Got 0"),
    (lambda: run_arml(LINE, MAIN, steps=0), "`steps` should be a whole number of at least 1. Got 0"),
    (lambda: sample_by_training(LINE.true_prior, 100.0), "longer steps diverge. Got 100.0"),
    (lambda: cut_into_cells(LINE, MAIN, 0.0), "`radius` should be a positive number. Got 0.0"),
]


@pytest.mark.parametrize(("make", "words"), [*NO_NUMBERS, *OTHER_SIZES, *OUTSIDE, *COUNTS])
def test_bad_input_is_refused_with_what_was_given(make, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        make()


def test_good_input_next_to_it_passes():
    assert LINE.joint(MAIN, [1, 1]).size == 1
    assert plane_world().true_prior.log_density(np.zeros((4, 5, 2))).shape == (4, 5)
    assert LINE.likelihood(np.int64(3), [0.1]).precision == 3 * LINE.likelihood(1, [0.1]).precision
    assert CELLS.kl(np.full((2, 3, 2), 1.0)).shape == (2, 3)
    assert project([1, 2], 0).tolist() == [0, 0]
