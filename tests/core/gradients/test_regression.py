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
    assert regressions.covariance(0, h, y) is None
    for part in range(0, len(h), 34):
        found = regressions.learn(0, h[part : part + 34], y[part : part + 34])
    h, y = h[-ROWS:], y[-ROWS:]
    strength = RIDGE * float((h - h.mean(0)).square().sum() / len(h))
    assert_close(found, torch.from_numpy(Ridge(alpha=strength).fit(h, y).coef_.T.copy()))
    assert_close(regressions.covariance(0, h, y), (h - h.mean(0)).T @ (y - y.mean(0)))
    assert not regressions.remembered.any()
    regressions.restore(regressions.state_dict())
    assert regressions.covariance(0, h, y) is None


def test_the_covariance_is_that_of_the_fading_rows():
    """That of all rows about their common mean, as the regression has it."""
    regressions = Regressions(1)
    batches = [(draw(30, 4), draw(30, 2, seed=1)), (2 + draw(9, 4, seed=2), 1 + draw(9, 2, seed=3))]
    assert regressions.covariance(0, *batches[0]) is None
    for batch in batches:
        regressions.learn(0, *batch)
    weights = torch.cat([torch.full((30,), MEMORY), torch.ones(9)])[:, None].double()
    h, y = (torch.cat(parts) for parts in zip(*batches, strict=True))
    h, y = (part - (weights * part).sum(0) / weights.sum() for part in (h, y))
    assert_close(regressions.covariance(0, *batches[0]), (weights * h).T @ y, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("features", [5, FEATURES + 1])
def test_tasks_that_are_followed_add_covariances_of_single_batches(features):
    regressions = Regressions(2)
    batches = [(n + draw(n, features, seed=n), draw(n, 3, seed=n + 50)) for n in (8, 20, 5)]
    expected = torch.zeros(features, 3, dtype=torch.float64)
    for h, y in batches:
        regressions.follow(1, h, y)
        expected = MEMORY * expected + (h - h.mean(0)).T @ (y - y.mean(0))
    assert_close(regressions.covariance(1, *batches[0]), expected, rtol=1e-5, atol=1e-5)
    assert regressions.covariance(0, *batches[0]) is None
    regressions.follow(1, float("inf") * batches[0][0], batches[0][1])
    assert_close(regressions.covariance(1, *batches[0]), expected, rtol=1e-5, atol=1e-5)


def test_what_is_followed_goes_on_exactly_from_a_checkpoint():
    first, second = Regressions(1), Regressions(1)
    first.follow(0, draw(9, 5), draw(9, 2, seed=1))
    second.restore({name: part.clone() for name, part in first.state_dict().items()})
    h, y = draw(8, 5, seed=2), draw(8, 2, seed=3)
    for regressions in (first, second):
        regressions.follow(0, h, y)
    assert torch.equal(first.covariance(0, h, y), second.covariance(0, h, y))


def test_rows_that_overflow_are_forgotten():
    regressions = Regressions(1)
    regressions.learn(0, draw(9, 5), draw(9, 2, seed=1))
    before = regressions.remembered.clone()
    assert regressions.learn(0, 1e30 * draw(9, 5), draw(9, 2, seed=1)) is None
    assert_close(regressions.remembered, before)
