"""Weights from the rates at which losses fall."""

import math

import pytest
import torch
from torch.testing import assert_close

from arml import DWA, Signals


def follow(method, rows):
    state = method.init(torch.zeros(len(rows[0]), dtype=torch.float64))
    history = []
    for row in rows:
        weights, state = method.update(state, Signals(torch.tensor(row, dtype=torch.float64)))
        history.append(weights)
    return history


def softmax(*rates):
    powers = [math.exp(rate / 2) for rate in rates]
    return torch.tensor([len(rates) * power / sum(powers) for power in powers], dtype=torch.float64)


def test_by_hand():
    """Means of two: (4, 4), then (2, 3), then (2, 1.5): rates (1/2, 3/4), then (1, 1/2)."""
    rows = [[9, 3, 5], [9, 5, 3], [9, 2, 2], [9, 2, 4], [9, 2, 1], [9, 2, 2]]
    history = follow(DWA(window=2), rows)
    assert_close(torch.stack(history[:3]), torch.ones(3, 3, dtype=torch.float64))
    assert_close(history[3][1:], softmax(1 / 2, 3 / 4))
    assert_close(history[4], history[3])
    assert_close(history[5][1:], softmax(1, 1 / 2))


def test_the_rates_say_which_loss_falls_slowly_whatever_its_scale():
    rows = [[1, 0.5**step, 1e6 * 0.9**step] for step in range(6)]
    weights = follow(DWA(window=1), rows)[-1]
    assert_close(weights[1:], softmax(0.5, 0.9))
    assert weights[2] > 1 > weights[1]


@pytest.mark.parametrize("odd", [-1.0, 0.0])
def test_a_loss_that_is_not_positive_has_no_rate(odd):
    weights = follow(DWA(window=1), [[1, odd, 1], [1, odd, 0.5]])[-1]
    assert_close(weights[1:], softmax(1, 0.5))


def test_a_window_counts_the_updates_in_which_a_task_is_present():
    method = DWA(window=2)
    state = method.init(torch.zeros(3, dtype=torch.float64))
    both, first = torch.tensor([True, True, True]), torch.tensor([True, True, False])
    losses = [([1, 4, 4], both), ([1, 4, 0], first), ([1, 1, 0], first), ([1, 1, 4], both)]
    for row, present in losses:
        weights, state = method.update(state, Signals(torch.tensor(row, dtype=torch.float64), present=present))
    assert_close(weights[1:], softmax(1 / 4, 1))  # task 2 has had one window


def test_tasks_that_take_turns_reach_what_all_at_once_reach():
    method = DWA(window=1)
    state = method.init(torch.zeros(4, dtype=torch.float64))
    for step in range(4):
        losses = torch.tensor([1, 0.5**step, 0.7**step, 2 * 0.9**step], dtype=torch.float64)
        for task in (1, 2, 3):
            present = torch.arange(4) == task
            weights, state = method.update(state, Signals(losses * present, present=present))
    assert_close(weights[1:], softmax(0.5, 0.7, 0.9))


def test_one_weight_cannot_move():
    assert not DWA().can_move(1)
    assert follow(DWA(window=1), [[1, 2], [1, 1], [1, 5]])[-1].tolist() == [1, 1]


def test_the_window_is_a_whole_number():
    with pytest.raises(ValueError, match=r"DWA: `window` should be a whole number of at least 1. Got 0"):
        DWA(window=0)
