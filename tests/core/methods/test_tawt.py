"""Exponentiated weights over the main and the auxiliary tasks."""

import torch
from core.laws import random_step, signals_from
from torch.testing import assert_close

from arml import TAWT


def follow(method, jacobians):
    state = method.init(jacobians[0][:, 0])
    for jacobian in jacobians:
        weights, state = method.update(state, signals_from(jacobian, jacobian[:, 0], method, state))
    return weights


def test_the_authors_update_in_steps():
    """They keep weights that sum to 1 and multiply losses by their number."""
    jacobians = [random_step(seed)[0] for seed in range(5)]
    share = torch.full((5,), 1 / 5, dtype=torch.float64)
    for jacobian in jacobians:
        share = share * torch.exp(0.3 * torch.cosine_similarity(jacobian[:1], jacobian))
        share = share / share.sum()
    assert_close(follow(TAWT(lr=0.3), jacobians), 5 * share)


def test_the_main_task_wins_in_the_end():
    jacobian, _ = random_step(seed=0)
    weights = follow(TAWT(), [jacobian] * 1000)
    assert_close(weights, torch.tensor([5.0, 0, 0, 0, 0], dtype=torch.float64), atol=1e-3, rtol=0)


def test_factors_on_losses_change_nothing():
    jacobians = [random_step(seed)[0] for seed in range(5)]
    factors = torch.tensor([[3.0], [1e-6], [1e6], [2.0], [1.0]], dtype=torch.float64)
    assert_close(follow(TAWT(), [factors * jacobian for jacobian in jacobians]), follow(TAWT(), jacobians))


def test_without_a_main_gradient_nothing_moves():
    jacobian, _ = random_step(seed=0)
    jacobian[0] = 0
    assert_close(follow(TAWT(), [jacobian]), torch.ones(5, dtype=torch.float64))


def test_a_step_of_any_length_is_finite():
    jacobians = [random_step(seed)[0] for seed in range(3)]
    weights = follow(TAWT(lr=1e6), jacobians)
    assert_close(weights, torch.tensor([5.0, 0, 0, 0, 0], dtype=torch.float64))
