"""Weights that descend on the main loss after the next step."""

import pytest
import torch
from core.laws import random_step, signals_from
from torch.testing import assert_close

from arml import AutoLambda


def follow(method, jacobians):
    state = method.init(jacobians[0][:, 0])
    for jacobian in jacobians:
        weights, state = method.update(state, signals_from(jacobian, jacobian[:, 0], method, state))
    return weights


JACOBIANS = [random_step(seed)[0] for seed in range(6)]


def test_torchs_adam_on_the_main_loss_after_a_short_virtual_step():
    """With linear losses the slope of L_0(theta - eta sum_i w_i g_i) is the inner product, exactly."""
    lambdas = torch.ones(4, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([lambdas], lr=0.1, eps=0)
    for jacobian in JACOBIANS:
        virtual = torch.zeros(6, dtype=torch.float64) - 1e-3 * (jacobian[0] + lambdas @ jacobian[1:])
        optimizer.zero_grad()
        (jacobian[0] @ virtual).backward()
        optimizer.step()
    assert bool((lambdas > 0).all())  # nothing is cut at 0
    assert_close(follow(AutoLambda(lr=0.1), JACOBIANS)[1:], lambdas.detach())


@pytest.mark.parametrize("factors", [[1e3] * 5, [1e-3, 1, 1, 1, 1], [1, 1e6, 1e-6, 1, 2]], ids=repr)
def test_factors_on_losses_change_nothing(factors):
    scaled = [torch.tensor(factors, dtype=torch.float64)[:, None] * jacobian for jacobian in JACOBIANS]
    assert_close(follow(AutoLambda(), scaled), follow(AutoLambda(), JACOBIANS))


def test_weights_stop_at_0_and_return():
    against = torch.tensor([[1, 0], [-1, 1]], dtype=torch.float64)
    agreeing = torch.tensor([[1, 0], [1, 1]], dtype=torch.float64)
    assert follow(AutoLambda(lr=0.1), [against] * 20).tolist() == [1, 0]
    assert follow(AutoLambda(lr=0.1), [against] * 20 + [agreeing] * 40)[1] > 1


def test_gradients_of_zero_change_nothing():
    assert follow(AutoLambda(), [torch.zeros(3, 2, dtype=torch.float64)] * 3).tolist() == [1, 1, 1]
