"""When weights count as settled."""

import pytest
import torch

from arml import Convergence
from arml.convergence import initial_state


def settles_after(weights, rule):
    """Number of updates until convergence, or None."""
    state = initial_state(torch.zeros(2, dtype=torch.float64))
    for i, w in enumerate(weights):
        state = rule.update(state, torch.tensor([1.0, w], dtype=torch.float64))
        if state.settled:
            return i + 1
    return None


def test_by_hand():
    """Window averages 1, 2, 2.5, 2.6: changes 1, .5, .1; .1 <= .1 * 1.6, but .5 > .1 * 1.5."""
    rule = Convergence(window=2, tolerance=0.1)
    assert settles_after([0, 2, 1, 3, 2, 3, 2.6, 2.6], rule) == 8
    assert settles_after([0, 2, 1, 3, 2, 3], rule) is None


def test_weights_that_do_not_move_settle_after_two_windows():
    assert settles_after([1.0] * 100, Convergence(window=10)) == 20


def test_slow_state_is_not_convergence():
    """A learning rate a thousand times smaller moves weights a thousand times less, and settles no earlier."""
    rule = Convergence(window=10, tolerance=0.05)
    fast, slow = ([1 + scale * i for i in range(150)] for scale in (0.01, 0.00001))
    assert settles_after(fast, rule) is None
    assert settles_after(slow, rule) is None


def test_an_exponential_approach_settles_near_its_end():
    rule = Convergence(window=10, tolerance=0.05)
    path = [2 - 0.95**i for i in range(1000)]
    assert abs(path[settles_after(path, rule)] - 2) < 0.1


def test_fluctuation_settles_in_about_one_over_tolerance_windows():
    torch.manual_seed(0)
    rule = Convergence(window=20, tolerance=0.1)
    steps = settles_after((1 + 0.1 * torch.randn(4000)).tolist(), rule)
    assert 2 * 20 <= steps <= 20 * 20


def test_the_settled_average_is_that_of_the_last_window():
    rule = Convergence(window=4, tolerance=0.5)
    state = initial_state(torch.zeros(2, dtype=torch.float64))
    for w in [5, 5, 5, 5, 1, 2, 1, 2, 1.4, 1.6, 1.4, 1.6]:
        state = rule.update(state, torch.tensor([1.0, w], dtype=torch.float64))
    assert bool(state.settled)
    assert state.average.tolist() == pytest.approx([1, 1.5])


@pytest.mark.parametrize("settings", [{"window": 0}, {"window": 2.5}, {"tolerance": 0}, {"tolerance": 1}])
def test_wrong_settings(settings):
    with pytest.raises(ValueError, match=f"`{next(iter(settings))}` should .* Got {next(iter(settings.values()))}"):
        Convergence(**settings)
