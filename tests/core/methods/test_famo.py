"""Logits that follow the change of the losses."""

from itertools import pairwise

import pytest
import torch
from torch.testing import assert_close

from arml import FAMO, Signals


def follow(method, rows):
    state = method.init(torch.zeros(rows.shape[1], dtype=torch.float64))
    for row in rows:
        weights, state = method.update(state, Signals(row))
    return weights, state


def random_losses(steps, num_aux=3):
    generator = torch.Generator().manual_seed(0)
    return torch.rand(steps, 1 + num_aux, generator=generator, dtype=torch.float64) + 0.5


def test_the_authors_update_with_torchs_adam():
    """They differentiate the softmax by autograd."""
    rows = random_losses(8)[:, 1:]
    logits = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=0.025, weight_decay=0.01, eps=0)
    for last, now in pairwise(rows):
        change = (last + 1e-8).log() - (now + 1e-8).log()
        logits.grad = torch.autograd.grad(torch.softmax(logits, 0), logits, grad_outputs=change)[0]
        optimizer.step()
    z = torch.softmax(logits.detach(), 0)
    share = z / (rows[-1] + 1e-8)
    weights, state = follow(FAMO(), random_losses(8))
    assert_close(state.logits, logits.detach())
    assert_close(weights[1:], 3 * share / share.sum())


def test_the_weighted_losses_have_the_gradient_of_weighted_logarithms():
    theta = torch.tensor([0.3, 0.7], dtype=torch.float64, requires_grad=True)
    losses = torch.stack([theta.sum(), theta.square().sum(), (1 + theta[0]) ** 3])
    weights, state = follow(FAMO(), losses.detach()[None])
    z = torch.softmax(state.logits, 0)
    logarithms = torch.autograd.grad((z * losses[1:].log()).sum(), theta, retain_graph=True)[0]
    found = torch.autograd.grad((weights[1:] * losses[1:]).sum(), theta)[0]
    assert_close(found / found.norm(), logarithms / logarithms.norm())


def test_a_loss_that_falls_slowly_gains_a_logit():
    steps = torch.arange(40, dtype=torch.float64)
    rows = torch.stack([torch.ones(40, dtype=torch.float64), 5 * 0.9**steps, 0.99**steps], dim=1)
    _, state = follow(FAMO(), rows)
    assert state.logits[1] > 0.2
    assert state.logits[0] < -0.2


def test_factors_on_losses_leave_the_logits_alone():
    rows = random_losses(8)
    _, plain = follow(FAMO(epsilon=1e-30), rows)
    _, scaled = follow(FAMO(epsilon=1e-30), rows * torch.tensor([1.0, 1e-6, 1e6, 3.0], dtype=torch.float64))
    assert_close(scaled.logits, plain.logits)


def test_a_loss_that_is_not_positive_keeps_its_weight():
    rows = random_losses(2)
    rows[1, 2] = -0.5
    before, _ = follow(FAMO(), rows[:1])
    with pytest.warns(UserWarning, match=r"FAMO takes the logarithm of auxiliary losses, but got -0.5"):
        weights, _ = follow(FAMO(), rows)
    assert weights[2] == before[2]
    assert weights[1] != before[1]


def test_weights_sum_to_the_number_of_tasks():
    for steps in range(1, 9):
        weights, _ = follow(FAMO(), random_losses(steps))
        assert_close(weights[1:].sum(), torch.tensor(3.0, dtype=torch.float64))


def test_tasks_that_take_turns_gain_and_lose_like_tasks_that_are_always_present():
    method, together = FAMO(), FAMO()
    state, other = (m.init(torch.zeros(3, dtype=torch.float64)) for m in (method, together))
    for step in range(40):
        losses = torch.tensor([1, 5 * 0.9**step, 0.99**step], dtype=torch.float64)
        expected, other = together.update(other, Signals(losses))
        for task in (1, 2):
            present = torch.arange(3) == task
            weights, state = method.update(state, Signals(losses * present, present=present))
    assert_close(state.logits, other.logits, atol=0.05, rtol=0)
    assert_close(weights, expected, atol=0.15, rtol=0)
    assert float(state.logits[1] - state.logits[0]) > 0.5


def test_settings_are_checked():
    with pytest.raises(ValueError, match=r"FAMO: `decay` should be a number of at least 0. Got -1"):
        FAMO(decay=-1)
    assert not FAMO().can_move(1)
