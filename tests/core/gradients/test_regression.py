"""Regressions over many batches, against one regression on all their rows with weights."""

import pytest
import torch
from sklearn.linear_model import Ridge
from torch.testing import assert_close

from arml.gradients.regression import ANSWERS, FEATURES, MEMORY, RIDGE, Regressions, regress


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_many_batches_are_one_regression_with_fading_rows():
    """Batches of different sizes, with means far from 0."""
    batches = [(3 + draw(n, 6, seed=n), 5 + draw(n, 2, seed=n + 100)) for n in (20, 7, 31)]
    regressions = Regressions(2)
    for h, y in batches:
        found = regressions.learn(1, h, y)
    weights = torch.cat([torch.full((len(h),), MEMORY**i) for i, (h, _) in zip((2, 1, 0), batches, strict=True)])
    h, y = (torch.cat(parts) for parts in zip(*batches, strict=True))
    mean = (weights[:, None] * h).sum(0) / weights.sum()
    strength = RIDGE * float((weights[:, None] * (h - mean).square()).sum() / weights.sum())
    model = Ridge(alpha=strength).fit(h, y, sample_weight=weights)
    assert_close(found, torch.from_numpy(model.coef_.T.copy()), rtol=1e-4, atol=1e-6)
    assert not regressions.remembered[:, 0].any()


def test_it_goes_on_exactly_from_a_checkpoint():
    first, second = Regressions(3), Regressions(3)
    first.learn(2, draw(9, 5), draw(9, 2, seed=1))
    second.restore({name: part.clone() for name, part in first.state_dict().items()})
    h, y = draw(8, 5, seed=2), draw(8, 2, seed=3)
    assert_close(first.learn(2, h, y), second.learn(2, h, y), rtol=0, atol=0)
    second.restore({})
    assert not second.remembered.any()


@pytest.mark.parametrize(("features", "answers"), [(FEATURES + 1, 2), (3, ANSWERS + 1)])
def test_a_layer_that_is_too_large_is_learned_batch_by_batch(features, answers):
    regressions = Regressions(1)
    h, y = draw(30, features), draw(30, answers, seed=1)
    found = regressions.learn(0, h, y)
    strength = RIDGE * float((h - h.mean(0)).square().sum() / len(h))
    assert_close(found, torch.from_numpy(Ridge(alpha=strength).fit(h, y).coef_.T.copy()))
    assert not regressions.remembered.any()
    b, first = regressions.before(0, h, y)
    assert first == 15
    assert_close(b, regress(h[:15], y[:15]))


def test_a_regression_is_tested_before_it_learns():
    regressions = Regressions(1)
    h, y = draw(30, 4), draw(30, 2, seed=1)
    assert regressions.before(0, h, y) == (None, 0)
    learned = regressions.learn(0, h, y)
    b, first = regressions.before(0, draw(9, 4, seed=2), draw(9, 2, seed=3))
    assert first == 0
    assert_close(b, learned)


def test_rows_that_overflow_are_forgotten():
    regressions = Regressions(1)
    regressions.learn(0, draw(9, 5), draw(9, 2, seed=1))
    before = regressions.remembered.clone()
    assert regressions.learn(0, 1e30 * draw(9, 5), draw(9, 2, seed=1)) is None
    assert_close(regressions.remembered, before)
