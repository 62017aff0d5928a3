"""Sums over samples and comparisons, and what they prove."""

import math

import pytest
import torch
from torch.testing import assert_close

from arml.methods._evidence import LEAST, Comparisons, Samples, log_odds


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64)


def likelihood_ratio(p, nu, own):
    """The slow twin: the mean likelihood over a grid of mu, divided by that of mu = 0, as a logarithm."""
    mu = own * (torch.arange(200_000, dtype=torch.float64) + 0.5) / 200_000
    return float((-0.5 * ((p - mu) / nu).square() + 0.5 * (p / nu) ** 2).logsumexp(0) - math.log(len(mu)))


@pytest.mark.parametrize("p", [-0.8, -0.1, 0.0, 0.05, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("nu", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("own", [0.03, 0.2, 0.7])
def test_log_odds_are_those_of_the_mean_likelihood(p, nu, own):
    found = log_odds(numbers(p), numbers(nu), numbers(own))
    assert float(found) == pytest.approx(likelihood_ratio(p, nu, own), abs=1e-5)


def test_more_evidence_never_lowers_the_odds():
    p = torch.linspace(-1, 1, 401, dtype=torch.float64)
    for own in (0.05, 0.5):
        odds = log_odds(p, torch.full_like(p, 0.07), torch.full_like(p, own))
        assert bool(odds.isfinite().all())
        assert bool((odds.diff() > -1e-9).all())


def test_a_task_that_knows_nothing_about_itself_proves_little():
    """A coin whose answers fit by three times chance is not believed; a task that knows its own examples is."""
    three_times, chance = numbers(0.21, 0.21, 0.21), numbers(0.07, 0.07, 0.07)
    coin, worse, task = log_odds(three_times, chance, numbers(0.0, -0.5, 0.3)).tolist()
    assert coin == worse == pytest.approx(likelihood_ratio(0.21, 0.07, LEAST), abs=1e-4)
    assert coin < 1 < 2 < task


def test_samples_count_by_their_importance():
    samples = Samples(*torch.zeros(5, 1, dtype=torch.float64))
    for r, w in ((1, 1), (1, 1), (-1, 0.5), (-1, 0.5)):
        samples = samples.add(numbers(r), numbers(w))
    assert_close(samples.times, numbers(4))
    assert_close(samples.number(), numbers(3**2 / 2.5))
    assert_close(samples.mean(), numbers(1 / 3))
    error = math.sqrt((1 - 1 / 9) / (3.6 - 1))
    assert_close(samples.standard_error(), numbers(error))
    assert_close(samples.log_odds(), numbers((1 / 3 / error) ** 2 / 2))
    against = samples.add(numbers(-9), numbers(1))
    assert_close(against.log_odds(), -((against.mean() / against.standard_error()).square()) / 2)


def test_comparisons_are_means_over_those_that_were_usable():
    found = Comparisons(*torch.zeros(3, 2, dtype=torch.float64))
    for p, usable in ((0.0, (True, True)), (1.0, (True, False)), (0.5, (True, False))):
        found = found.add(numbers(p, p), numbers(0.2, 0.2), torch.tensor(usable))
    assert_close(found.compared, numbers(3, 1))
    assert_close(found.means()[0], numbers(0.5, 0))
    assert_close(found.means()[1], numbers(0.2, 0.2))
