"""The projection of auxiliary gradients, as a weight of the main task."""

import math

import pytest
import torch
from core.laws import signals_from
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from arml import PriPCGrad


def weights_of(method, jacobian):
    state = method.init(jacobian[:, 0])
    return method.update(state, signals_from(jacobian, jacobian[:, 0], method, state))[0]


def project_one_by_one(jacobian):
    """The sum of the main gradient and the auxiliary ones, each without the part that conflicts with it."""
    main, total = jacobian[0], jacobian[0].clone()
    for gradient in jacobian[1:]:
        product = gradient @ main
        total += gradient - product / (main @ main) * main if product < 0 else gradient
    return total


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), num_aux=st.integers(1, 12), scale=st.sampled_from([1e-3, 1.0, 1e3]))
def test_the_weighted_sum_is_the_sum_of_projected_gradients(seed, num_aux, scale):
    generator = torch.Generator().manual_seed(seed)
    jacobian = torch.randn(1 + num_aux, 8, generator=generator, dtype=torch.float64)
    jacobian[1:] *= scale
    weights = weights_of(PriPCGrad(max_weight=math.inf), jacobian)
    joint = weights @ jacobian
    assert_close(joint, project_one_by_one(jacobian), rtol=1e-9, atol=1e-9 * scale)
    assert weights[1:].tolist() == [1] * num_aux
    main = jacobian[0]
    assert float(joint @ main) >= float(main @ main) * (1 - 1e-6)  # the main loss falls, to first order


def test_agreeing_tasks_are_left_alone():
    agreeing = torch.tensor([[1, 0], [2, 1], [0, 3]], dtype=torch.float64)
    assert weights_of(PriPCGrad(), agreeing).tolist() == [1, 1, 1]


def test_a_main_gradient_near_zero_has_no_unlimited_weight():
    against = torch.tensor([[1e-6, 0], [-1, 0]], dtype=torch.float64)
    assert weights_of(PriPCGrad(), against).tolist() == [10, 1]
    assert weights_of(PriPCGrad(max_weight=math.inf), against).tolist() == pytest.approx([1 + 1e6, 1])
    assert weights_of(PriPCGrad(max_weight=math.inf), against * 1e-155).isfinite().all()


def test_without_a_main_gradient_there_is_no_conflict():
    assert weights_of(PriPCGrad(), torch.tensor([[0.0, 0], [-1, 0]], dtype=torch.float64)).tolist() == [1, 1]


def test_a_limit_below_1_is_refused():
    with pytest.raises(ValueError, match=r"PriPCGrad: `max_weight` should be a number of at least 1.*Got 0.5"):
        PriPCGrad(max_weight=0.5)
