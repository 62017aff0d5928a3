"""Variances that are learned beside the network."""

import pytest
import torch
from torch.testing import assert_close

from arml import AdaLoss, Signals, UncertaintyWeighting


def follow(method, losses, steps=1):
    state = method.init(torch.zeros_like(losses))
    for _ in range(steps):
        weights, state = method.update(state, Signals(losses))
    return weights, state


LOSSES = torch.tensor([1.0, 0.01, 0.5, 2.0, 300.0], dtype=torch.float64)


def test_constant_losses_end_at_weights_of_1_over_the_loss():
    weights, _ = follow(UncertaintyWeighting(), LOSSES, steps=1500)
    assert_close(weights[1:], 1 / LOSSES[1:], rtol=1e-6, atol=0)
    assert weights[0] == 1
    adaloss, _ = follow(AdaLoss(epsilon=1e-12), LOSSES)
    assert_close(weights, adaloss, rtol=1e-6, atol=0)


def test_the_step_is_gradient_descent_on_the_papers_loss():
    losses = torch.tensor([1.0, 0.3, 1.4], dtype=torch.float64)
    _, state = follow(UncertaintyWeighting(), losses, steps=7)
    s = state.log_variance.clone().requires_grad_()
    ((-s).exp() * losses[1:] + s).sum().backward()
    _, after = UncertaintyWeighting(lr=0.2).update(state, Signals(losses))
    assert_close(after.log_variance, state.log_variance - 0.2 * s.grad)


def test_a_large_loss_moves_a_variance_by_no_more_than_the_step_size():
    weights, _ = follow(UncertaintyWeighting(lr=0.1), torch.tensor([1.0, 1e30], dtype=torch.float64))
    assert_close(weights[1].log(), torch.tensor(-0.1, dtype=torch.float64))


def test_a_tiny_loss_ends_at_the_floor():
    losses = torch.tensor([1.0, 1e-30], dtype=torch.float64)
    weights, _ = follow(UncertaintyWeighting(lr=0.5, floor=1e-2), losses, steps=200)
    assert_close(weights[1], torch.tensor(100.0, dtype=torch.float64))


@pytest.mark.parametrize("odd", [-0.5, 0.0])
def test_a_loss_that_is_not_positive_keeps_its_weight(odd):
    losses = torch.tensor([1.0, odd, 1.0], dtype=torch.float64)
    with pytest.warns(
        UserWarning, match=f"UncertaintyWeighting takes the logarithm of auxiliary losses, but got {odd:g}"
    ):
        weights, _ = follow(UncertaintyWeighting(), losses)
    assert weights.tolist() == [1, 1, 1]
