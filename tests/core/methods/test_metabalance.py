"""Lengths of auxiliary gradients, brought towards the main one's."""

import pytest
import torch
from core.laws import random_step, signals_from
from torch.testing import assert_close

from arml import MetaBalance, Signals

# Lengths 2, 1 and 8.
JACOBIAN = torch.tensor([[2, 0, 0], [0, 1, 0], [0, 0, 8]], dtype=torch.float64)


def follow(method, jacobians):
    state = method.init(jacobians[0][:, 0])
    for jacobian in jacobians:
        weights, state = method.update(state, signals_from(jacobian, jacobian[:, 0], method, state))
    return weights


def test_the_authors_moving_average_from_zero():
    jacobians = [random_step(seed)[0] for seed in range(6)]
    means = torch.zeros(5, dtype=torch.float64)
    for jacobian in jacobians:
        means = 0.9 * means + 0.1 * jacobian.norm(dim=1)
    expected = 0.7 * means[0] / means + 0.3
    assert_close(follow(MetaBalance(), jacobians), expected)


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (MetaBalance(relax=1), [1, 2, 0.25]),
        (MetaBalance(relax=0.5), [1, 1.5, 0.625]),
        (MetaBalance(relax=0), [1, 1, 1]),
        (MetaBalance(relax=1, strategy="shrink"), [1, 1, 0.25]),
        (MetaBalance(relax=1, strategy="grow"), [1, 2, 1]),
    ],
    ids=repr,
)
def test_by_hand(method, expected):
    assert_close(follow(method, [JACOBIAN] * 3), torch.tensor(expected, dtype=torch.float64))


def test_a_task_that_comes_late_is_not_taken_for_a_short_one():
    method = MetaBalance(relax=1)
    state = method.init(JACOBIAN[:, 0])
    signals = signals_from(JACOBIAN, JACOBIAN[:, 0], method, state)
    for _ in range(5):
        _, state = method.update(state, signals._replace(present=torch.tensor([True, True, False])))
    weights, _ = method.update(state, signals)
    assert_close(weights, torch.tensor([1, 2, 0.25], dtype=torch.float64))


def test_gradients_of_zero():
    dead = JACOBIAN.clone()
    dead[1] = 0
    assert follow(MetaBalance(relax=1), [dead]).tolist() == [1, 1, 0.25]
    dead[0] = 0  # the length to reach is 0
    assert follow(MetaBalance(relax=1), [dead]).tolist() == [1, 1, 0]


def test_norms_are_required():
    method = MetaBalance()
    with pytest.raises(ValueError, match="asked for norms"):
        method.update(method.init(torch.zeros(3)), Signals(torch.ones(3)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"relax": 1.5}, r"`relax` should be in \[0, 1\]. Got 1.5"),
        ({"decay": 1.0}, r"MetaBalance: `decay` should be in \[0, 1\). Got 1.0"),
        ({"strategy": "C"}, r"one of \('both', 'shrink', 'grow'\). Got 'C'"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(ValueError, match=message):
        MetaBalance(**settings)
