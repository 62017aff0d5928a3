"""When weights count as settled, and with which error."""

import math

import pytest
import torch
from core.settling import WORLDS, World, history, looks, settle, simulate
from torch import nn

from arml import ARML, OLAUX, Convergence, CosineSim, Reweighter
from arml.convergence import initial_state


def run(paths, rule, start=1.0):
    """The state once ``paths`` [n] or [n, K] have settled, or at their end, and the number of updates."""
    paths = torch.as_tensor(paths, dtype=torch.float64)
    paths = paths[:, None] if paths.ndim == 1 else paths
    paths = torch.cat([torch.ones(len(paths), 1, dtype=torch.float64), paths], dim=1)
    state = initial_state(torch.tensor([1.0] + [start] * (paths.shape[1] - 1), dtype=torch.float64))
    for i, weights in enumerate(paths):
        state = rule.update(state, weights)
        if state.settled:
            return state, i + 1
    return state, None


def approach(updates, tau, noise=0.0, seed=0):
    return World(noise, tau).paths(seed + 1, updates)[seed]


# The rule


def test_by_hand():
    """The last quarters have 2.4 and 2.5: a drift of 0.1 after a way of 1.45 leaves 0.1 * 1.45 / 1.15 = 0.126."""
    path = [1.5] * 3 + [2.0] * 3 + [2.4] * 3 + [2.5] * 3
    state, updates = run(path, Convergence(window=1, tolerance=0.13))
    assert updates == 12
    assert state.average.tolist() == pytest.approx([1, 2.45])
    assert run(path, Convergence(window=1, tolerance=0.12))[1] is None


def test_the_first_look_has_four_windows():
    path = [2.0] * 1000
    assert [run(path, Convergence(window))[1] for window in (1, 4, 5, 50)] == [12, 16, 24, 256]


def test_updating_is_the_same_as_looking_at_the_whole_history():
    rule = Convergence(window=3)
    for path in World(0.2, tau=40).paths(3, 400):
        state = initial_state(torch.ones(2, dtype=torch.float64))
        states = [state := rule.update(state, torch.stack([path.new_ones(()), weight])) for weight in path]
        for size, blocks in looks(192, rule.window):
            expected = rule._judge(history(path[:size], blocks), blocks)
            assert torch.allclose(states[size - 1].average, expected.average)
            assert bool(states[size - 1].settled) == bool(expected.settled)


def test_the_scale_of_the_weights_does_not_matter():
    """A learning rate a million times smaller moves weights a million times less, and settles no earlier."""
    path = World(0.1, tau=50).paths(1, 4096)[0] - 1
    assert run(path, Convergence(), start=0.0)[1] == run(1e-6 * path, Convergence(), start=0.0)[1]


def test_memory_does_not_grow():
    state, _ = run(torch.arange(3000.0), Convergence())
    assert sum(part.numel() for part in state) < 70
    assert not bool(state.settled)


# What must not settle


@pytest.mark.parametrize("speed", [1.0, 1e-2, 1e-5])
def test_an_even_drift_never_settles(speed):
    path = 1 + speed * torch.arange(1, 6145)
    assert settle(path.double(), Convergence()) is None
    noisy = path + 10 * speed * torch.randn(6144, generator=torch.Generator().manual_seed(0))
    assert settle(noisy.double(), Convergence()) is None


def test_weights_that_nothing_has_moved_never_settle():
    assert run([1.0] * 3000, Convergence(window=1))[1] is None


@pytest.mark.parametrize("frozen", [1000, 1020, 1023])
def test_frozen_then_moving_is_judged_from_the_first_move(frozen):
    path = torch.cat([torch.ones(frozen).double(), approach(2048, tau=200)])
    state, updates = run(path, Convergence())
    assert updates == frozen + settle(approach(2048, tau=200), Convergence()).updates
    assert float(state.average[1]) > 1.95


@pytest.mark.parametrize("quiet", [500, 511, 767])
def test_a_weight_that_begins_to_move_is_not_its_own_measure(quiet):
    """After quiet fluctuation one weight starts on a long way just before the history is judged."""
    path = 1 + 0.001 * torch.randn(quiet, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    path = torch.cat([path, approach(5000, tau=1000)])
    rule = Convergence(window=quiet // 4)
    state, updates = run(path, rule)
    assert updates is None or updates < quiet or float(state.average[1]) > 1.95


def test_an_oscillation_settles_at_its_mean_after_many_periods():
    path = 1 + torch.sin(2 * math.pi * torch.arange(1, 50001).double() / 300)
    verdict = settle(path, Convergence())
    assert verdict.updates > 900
    assert abs(verdict.weight - 1) < verdict.allowed


# What settles, and how well


def test_weights_that_stop_moving_settle_at_the_first_look():
    state, updates = run(torch.tensor([[0.2, 2.8]] * 10 + [[0.0, 3.0]] * 1000), Convergence())
    assert updates == 256
    assert state.average.tolist() == [1, 0, 3]


def test_weights_at_corners_do_not_keep_the_others_from_settling():
    noise = 0.2 * torch.randn(8192, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    free = approach(8192, tau=100) + noise
    paths = torch.stack([free, 4 - free, torch.zeros_like(free), torch.zeros_like(free)], dim=1)
    state, updates = run(paths, Convergence())
    assert updates is not None
    assert state.average[3:].tolist() == [0, 0]
    assert float(state.average[1]) == pytest.approx(2, abs=0.08)


@pytest.mark.parametrize(
    "world",
    [World(0.1), World(0.1, correlated=10), World(0.01, 30), World(0.3, 30), World(0.1, 300), World(0.03, 300, 300)],
    ids=str,
)
def test_few_paths_settle_too_early(world):
    outcome = simulate(world, seeds=40, updates=16384)
    assert outcome.settled > 0.5
    assert outcome.early <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("world", [world for world in WORLDS if world.noise <= 0.3], ids=str)
def test_at_most_one_path_in_twenty_settles_too_early(world):
    assert simulate(world, seeds=150, updates=49152).early <= 0.05


@pytest.mark.parametrize("tau", [30, 300, 1000, 3000])
def test_an_exponential_approach_settles_after_95_percent_of_its_way(tau):
    for seed in range(5):
        verdict = settle(approach(12 * tau + 4096, tau, noise=0.03, seed=seed), Convergence())
        assert verdict.weight > 1.95


def test_a_timer_is_a_timer_and_keeps_the_second_half():
    path = 1 + torch.arange(1, 101).double()
    for at_most, average in ((1, 2.0), (7, 1 + (4 + 5 + 6 + 7) / 4), (40, 1 + 30.5)):
        state, updates = run(path, Convergence(at_most=at_most))
        assert updates == at_most
        assert float(state.average[1]) == pytest.approx(average, abs=1.01)
    assert run([1.0] * 50, Convergence(at_most=10))[1] is None


@pytest.mark.parametrize(
    "settings", [{"window": 0}, {"window": 2.5}, {"tolerance": 0}, {"tolerance": 1}, {"at_most": 0}, {"at_most": 1.5}]
)
def test_wrong_settings(settings):
    with pytest.raises(ValueError, match=f"`{next(iter(settings))}` should .* Got {next(iter(settings.values()))}"):
        Convergence(**settings)


# In the Reweighter


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.trunk, self.heads = nn.Linear(4, 5), nn.Linear(5, 4)

    def losses(self, tasks=("a", "b", "c")):
        columns = self.heads(self.trunk(torch.randn(8, 4)).tanh()).square().mean(0)
        return columns[0], dict(zip(tasks, columns[1:], strict=False))


def learn(net, reweighter, calls, tasks=("a", "b", "c")):
    for _ in range(calls):
        reweighter(*net.losses(tasks)).backward()
    return reweighter


def test_a_trunk_that_is_frozen_at_first_does_not_settle():
    net = Net()
    reweighter = Reweighter(ARML(), ["a", "b", "c"], net.trunk, every=1, convergence=Convergence(window=1))
    net.trunk.requires_grad_(False)
    learn(net, reweighter, 60)
    assert not reweighter.converged
    assert set(reweighter.weights.values()) == {1.0}
    net.trunk.requires_grad_(True)
    learn(net, reweighter, 3)
    assert set(reweighter.weights.values()) != {1.0}


def test_a_trunk_that_is_frozen_later_does_not_settle():
    net = Net()
    reweighter = Reweighter(ARML(), ["a", "b", "c"], net.trunk, every=1, convergence=Convergence(window=1))
    learn(net, reweighter, 3)
    net.trunk.requires_grad_(False)
    assert not learn(net, reweighter, 60).converged


@pytest.mark.parametrize("method", [ARML(lr=0.5), OLAUX(lr=0.5), CosineSim()], ids=repr)
def test_reset_goes_on_from_the_present_weights(method):
    net = Net()
    reweighter = Reweighter(method, ["a", "b", "c"], net.trunk, convergence=Convergence(at_most=5))
    learn(net, reweighter, 40)
    assert reweighter.converged
    settled, last = reweighter.weights, reweighter.signals
    reweighter.reset()
    assert not reweighter.converged
    assert reweighter.weights == settled
    assert dict(zip(settled, reweighter._memory.weights[1:].tolist(), strict=True)) == settled
    learn(net, reweighter, 1)
    assert reweighter.signals is not last
    learn(net, reweighter, 40)
    assert reweighter.converged


def test_a_converged_state_learns_on_without_a_rule():
    net = Net()
    reweighter = Reweighter(ARML(lr=0.5), ["a", "b", "c"], net.trunk, convergence=Convergence(at_most=5))
    state = learn(net, reweighter, 40).state_dict()
    again = Reweighter(ARML(lr=0.5), ["a", "b", "c"], net.trunk, convergence=None)
    again.load_state_dict(state)
    assert again.weights == reweighter.weights
    assert not again.converged
    learn(net, again, 1)
    assert again.weights != reweighter.weights
    same = Reweighter(ARML(lr=0.5), ["a", "b", "c"], net.trunk)
    same.load_state_dict(state)
    assert same.converged


def test_one_task_with_a_given_sum_settles_at_its_first_gradient():
    net = Net()
    reweighter = Reweighter(ARML(), ["a"], net.trunk)
    net.trunk.requires_grad_(False)
    assert not learn(net, reweighter, 3, ("a",)).converged
    net.trunk.requires_grad_(True)
    assert learn(net, reweighter, 1, ("a",)).converged
    assert reweighter.weights == {"a": 1.0}
