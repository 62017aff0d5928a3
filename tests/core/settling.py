"""Simulated weights, and how well the rule of convergence judges them.

``python tests/core/settling.py`` prints the table of docs/reweighter.md.

One path is one weight that starts at 1. Its deviations from a limit, or from a way to the limit, are noise: independent
at every update, or correlated over a number of updates as those of a weight that is pulled back slowly.
"""

import math
import sys
from typing import NamedTuple

import numpy as np
import torch
from scipy.signal import lfilter

from arml.convergence import Convergence, WindowState, initial_state

START = 1.0


class World(NamedTuple):
    """Weights that approach 2 from 1 within ``tau`` updates, or stay at 1 without ``tau``."""

    noise: float
    """Standard deviation; the way is 1."""
    tau: float | None = None
    correlated: float = 0.0
    """Updates over which the noise is correlated."""

    @property
    def limit(self):
        return START if self.tau is None else START + 1.0

    def paths(self, seeds, updates):
        """Weights [seeds, updates]."""
        t = np.arange(1, updates + 1)
        way = np.zeros(updates) if self.tau is None else 1 - np.exp(-t / self.tau)
        draws = np.random.default_rng(0).standard_normal((seeds, updates))
        if self.correlated:
            rho = math.exp(-1 / self.correlated)
            draws = lfilter([math.sqrt(1 - rho**2)], [1, -rho], draws, axis=1)
        return torch.from_numpy(START + way + self.noise * draws)


def history(path, blocks, start=START):
    """The state after the updates ``path`` [n], in ``blocks`` blocks: the slow twin of updating it n times."""
    state = initial_state(torch.tensor([1.0, start], dtype=torch.float64))
    length = len(path) // blocks
    totals, reach = state.totals.clone(), state.reach.clone()
    totals[:blocks] = torch.stack([torch.full((blocks,), length), path.view(blocks, length).sum(1)], dim=1)
    span = path.cummax(0).values.clamp(min=start) - path.cummin(0).values.clamp(max=start)
    reach[:blocks] = span[length - 1 :: length]
    updates, length = (torch.tensor(float(number), dtype=torch.float64) for number in (len(path), length))
    return state._replace(totals=totals, reach=reach, updates=updates, length=length)


def looks(updates, window):
    """Lengths of history, and their numbers of blocks, at which the rule judges."""
    sizes = [(blocks * 2**i, blocks) for i in range(40) for blocks in (12, 16) if (blocks, i) != (16, 39)]
    return [(size, blocks) for size, blocks in sorted(sizes) if 4 * window <= size <= updates]


class Verdict(NamedTuple):
    """When a path settled, at which weight, and how large an error was allowed."""

    updates: int
    weight: float
    allowed: float


def settle(path, rule, start=START):
    """The verdict on ``path`` [n]; ``None`` if it does not settle."""
    for size, blocks in looks(len(path), rule.window):
        state: WindowState = rule._judge(history(path[:size], blocks, start), blocks)
        if state.settled:
            return Verdict(size, float(state.average[1]), rule.tolerance * float(state.reach[blocks // 2 - 1]))
    return None


class Outcome(NamedTuple):
    """What became of many paths of a world."""

    settled: float
    early: float
    """Share of all paths that settled further from the limit than allowed."""
    median: float
    way: float
    """Share of the way that 95 % of the settled paths had done at least."""


def simulate(world, seeds, updates, rule=None):
    """The outcome over ``seeds`` paths of up to ``updates`` updates."""
    verdicts = [settle(path, rule or Convergence()) for path in world.paths(seeds, updates)]
    done = [v for v in verdicts if v is not None]
    early = sum(abs(v.weight - world.limit) > v.allowed for v in done) / seeds
    median = float(np.median([math.inf if v is None else v.updates for v in verdicts]))
    way = float(np.quantile([v.weight - START for v in done], 0.05)) if done else math.nan
    return Outcome(len(done) / seeds, early, median, way)


WORLDS = [
    World(0.1),
    World(0.1, correlated=10),
    World(0.1, correlated=100),
    *(World(noise, tau) for tau in (30, 300, 1000, 3000) for noise in (0.01, 0.1, 0.3, 1.0)),
    *(World(noise, tau, correlated=tau) for tau in (30, 300, 1000, 3000) for noise in (0.01, 0.03, 0.1)),
]


def main(seeds=200, updates=98304):
    write = sys.stdout.write
    write("| time constant | noise / way | noise correlated over | settled | too early | median updates | way done |\n")
    write("| --- | --- | --- | --- | --- | --- | --- |\n")
    for world in WORLDS:
        outcome = simulate(world, seeds, updates)
        tau, noise = ("no way", "") if world.tau is None else (f"{world.tau:g}", f"{world.noise:g}")
        way = "" if world.tau is None else f"{100 * outcome.way:.0f} %"
        write(
            f"| {tau} | {noise} | {world.correlated:g} | {100 * outcome.settled:.0f} % "
            f"| {100 * outcome.early:.1f} % | {outcome.median:.0f} | {way} |\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
