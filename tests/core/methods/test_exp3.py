"""A bandit over sources."""

import math

import torch
from torch.testing import assert_close

from arml import EXP3, Signals


def signals(arm, cosine, num_aux):
    """A batch with one source, whose gradient has length 2 and this cosine with the main one of length 3."""
    present, norms = torch.zeros(1 + num_aux, dtype=torch.bool), torch.zeros(1 + num_aux, dtype=torch.float64)
    present[[0, 1 + arm]] = True
    norms[0], norms[1 + arm] = 3, 2
    alignment = torch.zeros(1, 1 + num_aux, dtype=torch.float64)
    alignment[0, 0], alignment[0, 1 + arm] = 9, 6 * cosine
    return Signals(torch.zeros(1 + num_aux, dtype=torch.float64), alignment, norms=norms, present=present)


def test_the_papers_algorithm_in_plain_numbers():
    """Sums of rewards over probabilities, exponential weights, and a share for exploration that falls."""
    num_aux, generator = 3, torch.Generator().manual_seed(0)
    method = EXP3()
    state = method.init(torch.zeros(1 + num_aux, dtype=torch.float64))
    rewards, probability = [0.0] * num_aux, [1 / num_aux] * num_aux
    for t in range(1, 60):
        arm = int(torch.multinomial(torch.tensor(probability), 1, generator=generator))
        cosine = [0.9, -0.3, 0.1][arm]
        rewards[arm] += cosine / probability[arm]
        weights, state = method.update(state, signals(arm, cosine, num_aux))
        old, new = (min(1 / num_aux, math.sqrt(math.log(num_aux) / (num_aux * n))) for n in (t, t + 1))
        powers = [math.exp(old * r) for r in rewards]
        probability = [(1 - num_aux * new) * power / sum(powers) + new for power in powers]
        assert_close(weights[1:], num_aux * torch.tensor(probability, dtype=torch.float64))
    assert probability[0] > 0.5


def test_estimated_rewards_are_right_on_average():
    """Each source is drawn with its probability: its reward, over that probability, has the right mean."""
    method = EXP3()
    state = method.init(torch.zeros(4, dtype=torch.float64))
    for arm in (0, 1, 0):
        _, state = method.update(state, signals(arm, 0.5, 3))
    probability = state.weights[1:] / 3
    moved = [method.update(state, signals(arm, 0.25, 3))[1].rewards - state.rewards for arm in range(3)]
    assert_close(sum(p * gain for p, gain in zip(probability, moved, strict=True)), torch.full((3,), 0.25).double())


def test_every_source_stays_in_play():
    method = EXP3()
    state = method.init(torch.zeros(4, dtype=torch.float64))
    for t in range(1, 200):
        weights, state = method.update(state, signals(0, 1.0, 3))
        assert float(weights[1:].min()) >= 3 * min(1 / 3, math.sqrt(math.log(3) / (3 * (t + 1)))) - 1e-12
