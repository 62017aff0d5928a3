"""The methods that are tried in worlds where ARML fails."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from arml.fade import LinearFade
from arml.methods import ARML, Agreement, Fixed, GatedARML, Method, Uniform
from arml.reweighter import Reweighter


@dataclass(frozen=True)
class Contender:
    """A method, and what else the Reweighter is told."""

    name: str
    method: Method[Any]
    fades: bool = False
    """Whether the auxiliary part falls to 0 over the first 80 % of the run."""
    units: bool | None = None
    own_schedule: bool = False
    """Whether the method decides when to update."""

    def make(self, tasks: Sequence[str], theta: Tensor, steps: int, every: int) -> Reweighter:
        """The Reweighter of a run of ``steps`` steps."""
        return Reweighter(
            self.method,
            tasks,
            [theta],
            every=None if self.own_schedule else every,
            units=self.units,
            fade=LinearFade(until=0.8, total=steps) if self.fades else None,
            convergence=None,
        )


EQUAL = Contender("equal weights", Uniform())
PAPER = Contender("ARML", ARML(lr=0.05))
SCALE_FREE = Contender("ARML, scale-free step", ARML(lr=0.1, scale_free=True))
GATED = Contender("Gated ARML", GatedARML(ARML(lr=0.05), decay=0.9, warmup=10))
FADING = Contender("ARML, fading share", ARML(lr=0.05), fades=True)
AGREEMENT = Contender("Agreement", Agreement(), own_schedule=True)
IN_UNITS = Contender("ARML in common units", ARML(lr=0.05), units=True)


def main_only(num_tasks: int) -> Contender:
    """Training on the main task alone."""
    return Contender("main task alone", Fixed([0.0] * num_tasks))
