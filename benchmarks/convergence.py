"""Does a Reweighter stop learning too early, or never, and what does stopping save? Measured in worlds of known truth.

``python benchmarks/convergence.py`` trains every world twice per method and seed: with the default rule of convergence,
and without one. It prints how many runs settled, when, how many updates that saved, and what it did to the test error.
"""

import argparse
import statistics
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from arml import ARML, Agreement, Convergence, GatedARML, Growing, Method, Signals
from arml.lab.suite import WORLDS, run_world
from arml.methods import Needs

METHODS: dict[str, Method[Any]] = {"Agreement": Agreement(), "ARML": ARML(), "Gated ARML": GatedARML()}
FAST = (
    "digits-one-helps-mlp",
    "digits-three-help-two-mislead-mlp",
    "digits-five-random-mlp",
    "digits-one-helps-twelve-mislead-mlp",
    "tumours-twin-and-coin",
    "diabetes-one-helps-one-misleads",
)
"""Worlds for ``dev`` with small networks."""


@dataclass(frozen=True)
class Counted(Method[Any]):
    """A method that counts its updates."""

    method: Method[Any]
    updates: list[int] = field(default_factory=list, compare=False)

    def init(self, like: Tensor) -> Any:
        """That of the method."""
        return self.method.init(like)

    def needs(self) -> Needs:
        """Those of the method."""
        return self.method.needs()

    def can_move(self, num_aux: int) -> bool:
        """As the method says."""
        return self.method.can_move(num_aux)

    def schedule(self) -> Growing:
        """That of the method."""
        return self.method.schedule()

    def settle(self, average: Tensor, last: Tensor) -> Tensor:
        """As the method does."""
        return self.method.settle(average, last)

    def directions(self, state: Any) -> Tensor | None:
        """Those of the method."""
        return self.method.directions(state)

    def update(self, state: Any, signals: Signals) -> tuple[Tensor, Any]:
        """One update of the method, counted."""
        if signals.alignment is not None:
            self.updates.append(1)
        return self.method.update(state, signals)


class Pair(NamedTuple):
    """One run that may stop learning, beside the same run that never does."""

    updates: int
    all_updates: int
    difference: float
    """Test error of the first minus that of the second, in points."""

    @property
    def settled(self) -> bool:
        """Whether the first run stopped learning before its end."""
        return self.updates < self.all_updates


def train_pair(world: str, method: Method[Any], seed: int, steps: int | None) -> Pair:
    """Trains with the default rule, and without."""
    counted = [Counted(method), Counted(method)]
    rules = (Convergence(), None)
    errors = [
        run_world(WORLDS[world], one, seed, steps=steps, every=None, convergence=rule)[0]
        for one, rule in zip(counted, rules, strict=True)
    ]
    return Pair(len(counted[0].updates), len(counted[1].updates), errors[0] - errors[1])


def lines(seeds: int, steps: int | None) -> Iterator[str]:
    """A Markdown table, line by line."""
    yield "| method | runs | settled before the end | updates saved in those | error, minus that without stopping |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for name, method in METHODS.items():
        pairs = [train_pair(world, method, seed, steps) for world in FAST for seed in range(seeds)]
        settled = [pair for pair in pairs if pair.settled]
        saved = f"{statistics.mean(1 - p.updates / p.all_updates for p in settled):.0%}" if settled else ""
        change = statistics.mean(pair.difference for pair in pairs)
        yield f"| {name} | {len(pairs)} | {len(settled)} | {saved} | {change:+.2f} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=None, help="training steps; default: those of each world")
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for line in lines(given.seeds, given.steps):
        print(line, flush=True)
