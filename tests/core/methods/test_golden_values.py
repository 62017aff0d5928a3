"""Values a person can check by hand, and what each paper says."""

import math

import pytest
import torch
from core.laws import signals_from
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import tensor
from torch.testing import assert_close

from arml import (
    ARML,
    DWA,
    EXP3,
    FAMO,
    OLAUX,
    TAWT,
    AdaLoss,
    AutoLambda,
    CosineSim,
    DoGE,
    Fixed,
    GatedARML,
    GradNorm,
    MetaBalance,
    PriPCGrad,
    Signals,
    TorchJD,
    TorchJDScalarizer,
    UncertaintyWeighting,
    Uniform,
    WeightedCosineSim,
)

# Gradients of the main task, a helper and an opponent; losses 1, 2 and 1/2.
J = tensor([[1.0, 0.0], [1.0, 1.0], [-1.0, 1.0]], dtype=torch.float64)
LOSSES = tensor([1.0, 2.0, 0.5], dtype=torch.float64)
HALF_TANH = math.tanh(2**0.5 / 4)
"""2 sigmoid(x) - 1 for x = sqrt(2) / 2."""


def first_weights(method, jacobian=J, losses=LOSSES):
    state = method.init(torch.zeros_like(losses))
    return method.update(state, signals_from(jacobian, losses, method, state))[0]


def follow(method, jacobians):
    state = method.init(torch.zeros(len(jacobians[0]), dtype=torch.float64))
    history = []
    for jacobian in jacobians:
        weights, state = method.update(state, signals_from(jacobian, torch.ones(len(jacobian)), method, state))
        history.append(weights)
    return history


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (Uniform(), [1, 1, 1]),
        (Fixed((0.25, 3)), [1, 0.25, 3]),
        # r = g_0 - g_1 - g_2 = (1, -2); slopes -2 <g_k, r> = (2, 6): alpha - 0.1 slope = (.8, .4), projected +.4 each
        (ARML(lr=0.1), [1, 1.2, 0.8]),
        (ARML(lr=0.1, projection="shift_clamp"), [1, 1.2, 0.8]),
        # alpha - slope = (-1, -5): projected (2, 0); shifted by 4 and cut: (3, 0)
        (ARML(lr=1.0, max_step=math.inf), [1, 2, 0]),
        (ARML(lr=1.0, projection="shift_clamp", max_step=math.inf), [1, 3, 0]),
        # centred, the step is (-2, 2): shortened to (-.75, .75), with the sum kept
        (ARML(lr=1.0), [1, 1.75, 0.25]),
        (ARML(lr=1.0, max_step=0.5), [1, 1.5, 0.5]),
        (GatedARML(arml=ARML(lr=1.0, max_step=0.5)), [1, 1.5, 0.5]),
        # root mean square of (2, 6) is sqrt(20): steps (.0447, .1342), the mean .0894 is projected away
        (ARML(lr=0.1, scale_free=True), [1, 1 + 0.2 / 20**0.5, 1 - 0.2 / 20**0.5]),
        # <g_0, g_k> = (1, -1): the opponent is off, and one task alone has weight 1
        (GatedARML(arml=ARML(lr=0.1), warmup=0), [1, 1, 0]),
        # the first updates are ARML's
        (GatedARML(arml=ARML(lr=0.1)), [1, 1.2, 0.8]),
        (AdaLoss(epsilon=1e-12), [1, 0.5, 2]),
        (CosineSim(), [1, 1, 0]),
        (OLAUX(lr=0.1), [1, 1.1, 0.9]),
        (OLAUX(lr=2, max_step=math.inf), [1, 3, 0]),
        (OLAUX(lr=2, max_step=0.5), [1, 1.5, 0.5]),
        (OLAUX(lr=0.1, horizon=2), [1, 1, 1]),
        # equal norms, equal rates: nothing to balance
        (GradNorm(), [1, 1, 1]),
        # cosines 1 / sqrt(2) and -1 / sqrt(2)
        (WeightedCosineSim(), [1, 0.5**0.5, 0]),
        # factors 2, 2^a, 2^-a with a = 1 / sqrt(2), scaled to the sum 3
        (TAWT(lr=math.log(2)), [3 * 2**x / (2 + 2**0.5**0.5 + 2 ** -(0.5**0.5)) for x in (1, 0.5**0.5, -(0.5**0.5))]),
        # the opponent's <g_2, g_0> = -1 is removed by one g_0 more
        (PriPCGrad(), [2, 1, 1]),
        # |g_0| / |g_k| = 1 / sqrt(2), seven tenths of the way
        (MetaBalance(), [1, 0.7 * 0.5**0.5 + 0.3, 0.7 * 0.5**0.5 + 0.3]),
        # no second window yet
        (DWA(window=1), [1, 1, 1]),
        # slopes 1 - 2 = -1 and 1 - 1/2: s = .1 and -.05
        (UncertaintyWeighting(lr=0.1), [1, math.exp(-0.1), math.exp(0.05)]),
        # logits of 0: in proportion to 1 / L = (.5, 2), with the sum 2
        (FAMO(epsilon=1e-12), [1, 0.4, 1.6]),
        # Adam's first step is the sign of the product
        (AutoLambda(lr=0.1), [1, 1.1, 0.9]),
        # factors 2 and 1/2, scaled to the sum 2; the largest exponent is 1
        (DoGE(lr=math.log(2)), [1, 1.6, 0.4]),
        (DoGE(lr=7.0), [1, 2 / (1 + math.exp(-2)), 2 / (1 + math.exp(2))]),
        (DoGE(lr=7.0, max_step=math.inf), [1, 2 / (1 + math.exp(-14)), 2 / (1 + math.exp(14))]),
        # epsilon_1 = 1/2 on cosines of +-1 / sqrt(2), whose difference is sqrt(2); epsilon_2 = sqrt(ln 2 / 4)
        (EXP3(), [1, 1 + (1 - math.log(2) ** 0.5) * HALF_TANH, 1 - (1 - math.log(2) ** 0.5) * HALF_TANH]),
    ],
    ids=repr,
)
def test_golden_values(method, expected):
    assert_close(first_weights(method), tensor(expected, dtype=torch.float64), rtol=1e-9, atol=1e-9)


def test_torchjd_finds_the_shortest_vector():
    """In the hull of (1, 0), (1, 1), (-1, 1) it is (1/5, 2/5): 2/5 of the way from g_0 to g_2."""
    aggregation = pytest.importorskip("torchjd.aggregation")
    weights = first_weights(TorchJD(aggregation.MGDAWeighting(epsilon=1e-9, max_iters=10000)))
    assert_close(weights, tensor([0.6, 0.0, 0.4], dtype=torch.float64), rtol=1e-3, atol=1e-3)


# ARML


def test_the_slope_is_the_one_of_the_authors_formula():
    """They differentiate the squared norm of the gradient gap by autograd; we take inner products."""
    jacobian = torch.randn(5, 8, dtype=torch.float64)
    alpha = torch.rand(4, dtype=torch.float64, requires_grad=True)
    (jacobian[0] - alpha @ jacobian[1:]).square().sum().backward()
    method = ARML(lr=1.0)
    state = method.init(torch.zeros(5, dtype=torch.float64))
    state = state._replace(weights=torch.cat([torch.ones(1, dtype=torch.float64), alpha.detach()]))
    slope, _ = method.step(state, signals_from(jacobian, torch.ones(5), method, state), torch.ones(4).bool())
    assert_close(slope, alpha.grad)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), num_aux=st.integers(1, 5))
def test_the_fixed_point_satisfies_the_kkt_conditions(seed, num_aux):
    """At the minimum the slope is the same for all weights above 0 and not smaller for those at 0."""
    generator = torch.Generator().manual_seed(seed)
    jacobian = torch.randn(1 + num_aux, 20, generator=generator, dtype=torch.float64)
    largest_curvature = 2 * float(torch.linalg.matrix_norm(jacobian[1:], ord=2)) ** 2
    method = ARML(lr=1 / largest_curvature)
    alpha = follow(method, [jacobian] * 500)[-1][1:]
    slope = -2 * jacobian[1:] @ (jacobian[0] - alpha @ jacobian[1:])
    inside = alpha > 1e-6
    level = slope[inside].mean()
    assert bool(((slope[inside] - level).abs() < 1e-4).all())
    assert bool((slope[~inside] > level - 1e-4).all())
    assert_close(alpha.sum(), tensor(float(num_aux), dtype=torch.float64))


def test_scale_free_does_not_see_a_factor_on_all_losses():
    jacobians = torch.randn(20, 4, 6, dtype=torch.float64)
    ends = []
    for factor in (1.0, 1e-3, 1e4):
        method, state = ARML(scale_free=True), None
        for jacobian in jacobians:
            state = state or method.init(torch.zeros(4, dtype=torch.float64))
            weights, state = method.update(state, signals_from(factor * jacobian, torch.ones(4), method, state))
        ends.append(weights)
    assert_close(ends[1], ends[0])
    assert_close(ends[2], ends[0])


def test_scale_free_survives_gradients_of_zero():
    assert first_weights(ARML(scale_free=True), torch.zeros(3, 2, dtype=torch.float64)).tolist() == [1, 1, 1]


# Gated ARML


def test_gated_arml_is_off_when_every_task_misleads_where_arml_must_spend_its_sum():
    noise = 0.1 * torch.randn(100, 3, 4, dtype=torch.float64)
    misleading = tensor([[1, 0, 0, 0], [-1, 1, 0, 0], [-1, 0, 1, 0]], dtype=torch.float64)
    jacobians = misleading + noise
    assert follow(GatedARML(), jacobians)[-1].tolist() == [1, 0, 0]
    assert_close(follow(ARML(), jacobians)[-1][1:].sum(), tensor(2.0, dtype=torch.float64))


def test_gated_arml_is_arml_when_every_task_agrees():
    helpful = tensor([[1, 0, 0], [1, 1, 0], [1, 0, 2]], dtype=torch.float64)
    jacobians = helpful + 0.05 * torch.randn(50, 3, 3, dtype=torch.float64)
    for gated, plain in zip(follow(GatedARML(), jacobians), follow(ARML(), jacobians), strict=True):
        assert_close(gated, plain)


def test_gated_weights_sum_to_the_number_of_tasks_that_are_on():
    mixed = tensor([[1, 0, 0], [1, 1, 0], [-1, 0, 2], [1, 0, -1], [-2, 0, 0]], dtype=torch.float64)
    weights = follow(GatedARML(), mixed.expand(40, -1, -1))[-1]
    assert weights[[2, 4]].tolist() == [0, 0]
    assert_close(weights[1:].sum(), tensor(2.0, dtype=torch.float64))


def test_a_task_that_comes_back_on_takes_part_again():
    against = tensor([[1, 0], [1, 1], [-1, 0]], dtype=torch.float64)
    agreeing = tensor([[1, 0], [1, 1], [1, 0]], dtype=torch.float64)
    history = follow(GatedARML(decay=0.5, warmup=0), [against] * 5 + [agreeing] * 5)
    assert history[4][2] == 0
    assert history[9][2] > 0
    assert_close(history[9][1:].sum(), tensor(2.0, dtype=torch.float64))


def test_no_task_is_switched_off_before_enough_was_gathered():
    against = tensor([[1, 0], [1, 1], [-1, 0]], dtype=torch.float64)
    history = follow(GatedARML(warmup=4), [against] * 6)
    assert [float(h[1:].sum()) for h in history] == pytest.approx([2, 2, 2, 2, 1, 1])
    assert history[4][2] == 0


def test_the_gate_remembers_past_agreement():
    """One step of mild disagreement does not switch off a task that has agreed so far."""
    agreeing = tensor([[1, 0], [1, 0]], dtype=torch.float64)
    mild = tensor([[1, 0], [-0.5, 0]], dtype=torch.float64)
    assert follow(GatedARML(decay=0.9, warmup=0), [agreeing] * 10 + [mild])[-1].tolist() == [1, 1]
    assert first_weights(CosineSim(), mild, torch.ones(2, dtype=torch.float64)).tolist() == [1, 0]


# GradNorm


def gradnorm_after(losses, jacobian, method):
    state = method.init(torch.zeros_like(losses[0]))
    for row in losses:
        weights, state = method.update(state, signals_from(jacobian, row, method, state))
    return weights


def test_gradnorm_gives_a_slow_task_more_weight():
    """Task 1 has lost 90 % of its first loss, task 2 only 10 %."""
    losses = tensor([[1.0, 1.0, 1.0], [1.0, 0.1, 0.9]], dtype=torch.float64)
    weights = gradnorm_after(losses, J, GradNorm(lr=0.01))
    assert weights[2] > 1 > weights[1]


def test_gradnorm_without_asymmetry_makes_weighted_gradients_equally_long():
    jacobian = tensor([[1, 0, 0], [0, 4, 0], [0, 0, 1]], dtype=torch.float64)
    losses = torch.ones(1000, 3, dtype=torch.float64)
    weights = gradnorm_after(losses, jacobian, GradNorm(lr=1e-3, asymmetry=0.0))
    assert_close(weights, tensor([1, 0.4, 1.6], dtype=torch.float64), rtol=0.02, atol=0.02)


def test_gradnorm_step_by_hand():
    """Norms 2 and 1, rates 0.5 and 1.5: G = (2, 1), mean 1.5, targets (0.75, 2.25): signs +, -."""
    jacobian = tensor([[1, 0], [2, 0], [0, 1]], dtype=torch.float64)
    losses = tensor([[1, 2, 2], [1, 1, 3]], dtype=torch.float64)
    method = GradNorm(lr=0.1)
    state = method.init(torch.zeros(3, dtype=torch.float64))
    state = state._replace(first=losses[0, 1:])
    weights, _ = method.update(state, signals_from(jacobian, losses[1], method, state))
    moved = tensor([1 - 0.2, 1 + 0.1], dtype=torch.float64)
    assert_close(weights[1:], moved * 2 / moved.sum())


@pytest.mark.parametrize("odd", [-0.7, 0.0, 1e-30])
def test_gradnorm_is_safe_when_a_loss_is_negative_or_near_zero(odd):
    """Its rate counts as average; the other tasks are weighted as without it."""
    losses = tensor([[1.0, 1.0, odd], [1.0, 0.4, odd / 2 - 0.01]], dtype=torch.float64)
    weights = gradnorm_after(losses, J, GradNorm())
    assert weights.tolist() == [1, 1, 1]
    three = torch.cat([J, tensor([[0.0, 1.4]], dtype=torch.float64)])
    losses = tensor([[1, 1, odd, 1], [1, 0.1, odd - 1, 0.9]], dtype=torch.float64)
    weights = gradnorm_after(losses, three, GradNorm(lr=0.01))
    assert weights[3] > weights[1]
    assert bool(weights.isfinite().all())


# The others


def test_ol_aux_collects_over_its_horizon():
    method = OLAUX(lr=0.1, horizon=3)
    history = follow(method, [J, J, J, J])
    assert [h.tolist() for h in history[:2]] == [[1, 1, 1]] * 2
    assert_close(history[2], tensor([1, 1.3, 0.7], dtype=torch.float64))
    assert_close(history[3], history[2])


def test_adaloss_has_the_gradient_of_the_logarithm():
    theta = tensor([0.3, 0.7], dtype=torch.float64, requires_grad=True)
    losses = torch.stack([theta.sum(), theta.square().sum(), (1 + theta[0]) ** 3])
    expected = torch.autograd.grad(losses[0] + (losses[1:] + 1e-6).log().sum(), theta, retain_graph=True)
    weights = first_weights(AdaLoss(), J, losses.detach())
    assert_close(torch.autograd.grad((weights * losses).sum(), theta), expected)


def test_adaloss_keeps_the_weight_of_a_loss_without_logarithm():
    with pytest.warns(UserWarning, match="takes the logarithm of auxiliary losses, but got -0.5"):
        weights = first_weights(AdaLoss(), J, tensor([1, -0.5, 0.25], dtype=torch.float64))
    assert_close(weights, tensor([1, 1, 4], dtype=torch.float64), rtol=1e-5, atol=0)


def test_torchjd_sees_only_the_tasks_in_the_batch():
    upgrad = pytest.importorskip("torchjd.aggregation").UPGradWeighting()
    method = TorchJD(upgrad)
    state = method.init(torch.zeros(3, dtype=torch.float64))
    present = tensor([True, False, True])
    weights, _ = method.update(state, Signals(LOSSES, gram=J @ J.T, present=present))
    assert_close(weights[present], upgrad(J[present] @ J[present].T).clamp(min=0))
    assert weights[1] == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ARML(lr=0), "`lr` should be a positive number. Got 0"),
        (lambda: ARML(lr=float("nan")), "`lr` should be a positive number. Got nan"),
        (lambda: ARML(projection="euclid"), "Unknown projection 'euclid'. Known: euclidean, shift_clamp"),
        (lambda: ARML(decay=1.0), r"`decay` should be in \[0, 1\)"),
        (lambda: GatedARML(warmup=-1), "`warmup` should be a whole number of at least 0. Got -1"),
        (lambda: GatedARML(decay=-0.1), r"`decay` should be in \[0, 1\)"),
        (lambda: Fixed((1.0, -2.0)), "at least 0. Got"),
        (lambda: Fixed((1.0,)).init(torch.zeros(3)), "holds 1 weights .* but there are 2 auxiliary tasks"),
        (lambda: GradNorm(asymmetry=-1), "`asymmetry`"),
        (lambda: OLAUX(horizon=0), "`horizon` should be a whole number of at least 1. Got 0"),
        (lambda: AdaLoss(epsilon=-1), "`epsilon`"),
        (lambda: TorchJD("upgrad"), "takes a weighting such as .* Got 'upgrad'"),
        (lambda: TorchJDScalarizer("stch"), "takes a scalariser such as .* Got 'stch'"),
        (lambda: DoGE(max_step=0), "`max_step` should be a positive number"),
        (lambda: ARML().update(ARML().init(torch.zeros(3)), Signals(torch.ones(3))), "asked for an alignment"),
    ],
)
def test_errors_say_what_was_given(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_torchjd_refuses_weightings_with_memory():
    aggregation = pytest.importorskip("torchjd.aggregation")
    with pytest.raises(ValueError, match="GradVacWeighting keeps memory of its own"):
        TorchJD(aggregation.GradVacWeighting())
