"""The cosine as a weight."""

import torch
from core.laws import random_step, signals_from
from torch.testing import assert_close

from arml import WeightedCosineSim


def weights_of(jacobian):
    method = WeightedCosineSim()
    state = method.init(jacobian[:, 0])
    return method.update(state, signals_from(jacobian, jacobian[:, 0], method, state))[0]


def test_weights_are_torchs_cosines():
    jacobian, _ = random_step(seed=0)
    expected = torch.cosine_similarity(jacobian[:1], jacobian[1:]).clamp(min=0)
    assert_close(weights_of(jacobian)[1:], expected)
    assert 0 < int((expected > 0).sum()) < len(expected)  # some agree, some do not


def test_factors_on_losses_change_nothing():
    jacobian, _ = random_step(seed=0)
    factors = torch.tensor([[3.0], [1e-6], [1e6], [2.0], [1.0]], dtype=torch.float64)
    assert_close(weights_of(factors * jacobian), weights_of(jacobian))


def test_gradients_of_zero_agree_with_nothing():
    jacobian, _ = random_step(seed=0)
    jacobian[0] = 0
    assert weights_of(jacobian).tolist() == [1, 0, 0, 0, 0]
    jacobian[0], jacobian[1] = jacobian[2], 0
    assert weights_of(jacobian)[1:3].tolist() == [0, 1]
