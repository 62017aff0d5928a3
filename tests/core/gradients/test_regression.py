"""Regressions over many batches, against one regression on all their rows with weights."""

import pytest
import torch
from sklearn.linear_model import Ridge
from torch.testing import assert_close

from arml.gradients.regression import ANSWERS, FEATURES, MEMORY, RIDGE, ROWS, Regressions


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
def test_of_a_larger_layer_the_last_rows_are_kept(features, answers):
    regressions = Regressions(1)
    h, y = draw(ROWS + 50, features), draw(ROWS + 50, answers, seed=1)
    assert regressions.before(0, h, y) is None
    for part in range(0, len(h), 34):
        found = regressions.learn(0, h[part : part + 34], y[part : part + 34])
    h, y = h[-ROWS:], y[-ROWS:]
    strength = RIDGE * float((h - h.mean(0)).square().sum() / len(h))
    assert_close(found, torch.from_numpy(Ridge(alpha=strength).fit(h, y).coef_.T.copy()))
    assert_close(regressions.before(0, h, y), found)
    assert not regressions.remembered.any()
    regressions.restore(regressions.state_dict())
    assert regressions.before(0, h, y) is None


def test_a_regression_is_tested_before_it_learns():
    regressions = Regressions(1)
    h, y = draw(30, 4), draw(30, 2, seed=1)
    assert regressions.before(0, h, y) is None
    learned = regressions.learn(0, h, y)
    assert_close(regressions.before(0, draw(9, 4, seed=2), draw(9, 2, seed=3)), learned)


def test_rows_that_overflow_are_forgotten():
    regressions = Regressions(1)
    regressions.learn(0, draw(9, 5), draw(9, 2, seed=1))
    before = regressions.remembered.clone()
    assert regressions.learn(0, 1e30 * draw(9, 5), draw(9, 2, seed=1)) is None
    assert_close(regressions.remembered, before)
