"""The bargain, and the preferences that the main task teaches."""

import pytest
import torch
from core.laws import random_step, signals_from
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from arml import AuxiNash
from arml.methods.auxi_nash import RIDGE, solve_bargain


def take_steps(method, jacobians):
    state = method.init(jacobians[0][:, 0])
    for jacobian in jacobians:
        weights, state = method.update(state, signals_from(jacobian, jacobian[:, 0], method, state))
    return weights, state


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    num=st.integers(2, 12),
    size=st.integers(1, 15),
    least=st.sampled_from([1e-4, 1e-2, 1.0]),
)
def test_the_bargain_satisfies_its_equation(seed, num, size, least):
    """G alpha = p / alpha, also for fewer dimensions than tasks and for very unequal preferences."""
    generator = torch.Generator().manual_seed(seed)
    jacobian = torch.randn(num, size, generator=generator, dtype=torch.float64)
    jacobian /= jacobian.norm(dim=1, keepdim=True)
    gram = jacobian @ jacobian.T + RIDGE * torch.eye(num, dtype=torch.float64)
    p = torch.rand(num, generator=generator, dtype=torch.float64).clamp(min=least)
    alpha = solve_bargain(gram, p)
    assert bool((alpha > 0).all())
    assert_close(alpha * (gram @ alpha), p, rtol=1e-6, atol=1e-9)


def test_orthogonal_tasks_are_weighted_by_the_inverse_of_their_length():
    jacobian = torch.diag(torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64))
    weights, _ = take_steps(AuxiNash(), [jacobian])
    assert_close(weights, torch.tensor([1, 0.5, 0.25], dtype=torch.float64))


def test_two_tasks_with_equal_preferences_take_steps_of_equal_length():
    """Whatever the angle between them: by symmetry."""
    jacobian = torch.tensor([[3, 4], [-1, 0.5]], dtype=torch.float64)
    weights, _ = take_steps(AuxiNash(), [jacobian])
    lengths = weights * jacobian.norm(dim=1)
    assert_close(lengths[1], lengths[0])


def test_weights_solve_the_bargain_of_the_raw_gradients():
    """w is alpha divided by alpha_0, so G w is a multiple of p / w."""
    jacobian, _ = random_step(seed=3)
    state = AuxiNash().init(jacobian[:, 0])._replace(preferences=torch.tensor([2.0, 0.5, 1, 0.7, 0.8]).double())
    weights, _ = AuxiNash().update(state, signals_from(jacobian, jacobian[:, 0], AuxiNash(), state))
    ratio = weights * (jacobian @ jacobian.T @ weights) / state.preferences
    assert_close(ratio / ratio[0], torch.ones(5, dtype=torch.float64), rtol=1e-2, atol=0)  # up to the ridge


def test_preferences_climb_the_first_order_descent_of_the_main_loss():
    """Central differences of <g_0, sum_i alpha_i g_i> with respect to p give the direction of the step."""
    jacobian, _ = random_step(seed=5)
    unit = jacobian / jacobian.norm(dim=1, keepdim=True)
    cosines = unit @ unit.T + RIDGE * torch.eye(5, dtype=torch.float64)

    def descent(p):
        return cosines[0] @ solve_bargain(cosines, p)

    p = torch.ones(5, dtype=torch.float64)
    shifts = 1e-5 * torch.eye(5, dtype=torch.float64)
    slope = torch.stack([(descent(p + shift) - descent(p - shift)) / 2e-5 for shift in shifts])
    moved = p + 1e-3 * slope / slope.norm().clamp(min=1)
    _, state = take_steps(AuxiNash(lr=1e-3), [jacobian])
    assert_close(state.preferences, 5 * moved / moved.sum(), rtol=1e-7, atol=0)


def test_preferences_move_from_an_opponent_to_a_helper_and_keep_their_sum():
    jacobian = torch.tensor([[1, 0, 0], [1, 1, 0], [-0.5, 0, 1]], dtype=torch.float64)
    _, state = take_steps(AuxiNash(), [jacobian] * 50)
    assert state.preferences[1] > 2 * state.preferences[2]
    assert_close(state.preferences.sum(), torch.tensor(3.0, dtype=torch.float64))
    _, state = take_steps(AuxiNash(floor=0.25), [jacobian] * 300)
    assert state.preferences.min() > 0.2


def test_a_factor_on_a_loss_divides_its_weight_and_changes_nothing_else():
    jacobians = [random_step(seed)[0] for seed in range(5)]
    factors = torch.tensor([10.0, 1e-3, 1e3, 2.0, 1.0], dtype=torch.float64)
    plain, before = take_steps(AuxiNash(), jacobians)
    scaled, after = take_steps(AuxiNash(), [factors[:, None] * jacobian for jacobian in jacobians])
    assert_close(scaled * factors / factors[0], plain, rtol=1e-7, atol=0)
    assert_close(after.preferences, before.preferences)


@pytest.mark.parametrize("other", [[-1.0, 0.0], [1.0, 0.0], [-3.0, 0.0]], ids=repr)
def test_parallel_and_opposite_gradients_have_finite_weights(other):
    weights, _ = take_steps(AuxiNash(), [torch.tensor([[1.0, 0.0], other], dtype=torch.float64)] * 5)
    assert bool(weights.isfinite().all())


def test_a_gradient_of_zero_keeps_its_weight():
    jacobian, _ = random_step(seed=0)
    jacobian[2] = 0
    weights, state = take_steps(AuxiNash(), [jacobian])
    assert (weights[2], state.preferences[2]) == (1, 1)
    others = [0, 1, 3, 4]
    assert_close(weights[others], take_steps(AuxiNash(), [jacobian[others]])[0])
    assert take_steps(AuxiNash(), [0 * jacobian])[0].tolist() == [1] * 5


def test_the_floor_is_at_most_the_mean_preference():
    with pytest.raises(ValueError, match=r"AuxiNash: `floor` should be at most 1, the mean preference. Got 2"):
        AuxiNash(floor=2)
