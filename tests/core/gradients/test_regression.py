"""Regressions over many batches, against one regression on all their rows with weights."""

import pytest
import torch
from sklearn.linear_model import Ridge
from torch.testing import assert_close

from arml.gradients.regression import ANSWERS, FEATURES, MEMORY, RIDGE, Regressions, shorten


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
    assert_close(found[:6, :2], torch.from_numpy(model.coef_.T.copy()), rtol=1e-4, atol=1e-6)
    assert not found[6:].any()
    assert not found[:, 2:].any()
    assert not regressions.remembered[:, 0].any()


def test_it_goes_on_exactly_from_a_checkpoint():
    first, second = Regressions(3), Regressions(3)
    first.learn(2, draw(9, 5), draw(9, 2, seed=1))
    second.restore({name: part.clone() for name, part in first.state_dict().items()})
    h, y = draw(8, 5, seed=2), draw(8, 2, seed=3)
    assert_close(first.learn(2, h, y), second.learn(2, h, y), rtol=0, atol=0)
    second.restore({})
    assert not second.remembered.any()


@pytest.mark.parametrize(("features", "answers"), [(3, 2), (500, 40)])
def test_what_is_remembered_has_one_size(features, answers):
    regressions = Regressions(1)
    before = regressions.remembered.shape
    b = regressions.learn(0, draw(30, features), draw(30, answers, seed=1))
    assert b.shape == (FEATURES, ANSWERS)
    assert regressions.remembered.shape == before


def test_folded_features_tell_almost_as_much():
    """300 features, of which the mean of the first 150 is the answer."""
    h, tested = draw(400, 300), draw(100, 300, seed=1)
    h[:, :150] += 0.7 * draw(400, 1, seed=2)
    tested[:, :150] += 0.7 * draw(100, 1, seed=3)
    b = Regressions(1).learn(0, h, h[:, :150].mean(1, keepdim=True))
    answers = shorten(tested, FEATURES) @ b[:, 0]
    assert torch.corrcoef(torch.stack([answers, tested[:, :150].mean(1)]))[0, 1] > 0.6


def test_rows_that_overflow_are_forgotten():
    regressions = Regressions(1)
    regressions.learn(0, draw(9, 5), draw(9, 2, seed=1))
    before = regressions.remembered.clone()
    assert regressions.learn(0, 1e30 * draw(9, 5), draw(9, 2, seed=1)) is None
    assert_close(regressions.remembered, before)
