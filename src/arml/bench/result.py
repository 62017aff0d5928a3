"""Everything that was measured, as one file of JSON."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from arml.report.data.records import COST

T = TypeVar("T")


@dataclass(frozen=True)
class Row:
    """One way on one kind of network with K tasks."""

    kind: str
    name: str
    num_aux: int
    """K."""
    median: float
    """Seconds of a step."""
    low: float
    """Lower quartile."""
    high: float
    """Upper quartile."""
    n: int
    """Turns."""
    ratio: float
    """To a step with fixed weights at the same K."""
    peak_bytes: int | None
    """The most that tensors take during a step, beyond what they took before it; ``None``: not measured."""
    extra_bytes: int | None
    """How much more that is than for a step with fixed weights."""

    def spread(self) -> float:
        """Half the distance of the quartiles, in the unit of the ratio."""
        return (self.high - self.low) / 2 * self.ratio / self.median


@dataclass(frozen=True)
class KindFacts:
    """What was measured on."""

    name: str
    batch: int
    parameters: int
    """P, the shared ones."""
    ways: tuple[str, ...]
    """Names of the rows, in order."""


@dataclass(frozen=True)
class Refusal:
    """A way that has no number, and why."""

    kind: str
    name: str
    num_aux: int
    reason: str


@dataclass(frozen=True)
class WholeRun:
    """Training with learned weights on the Reweighter's own schedule, before they settle, against fixed weights."""

    kind: str
    num_aux: int
    closure: bool
    """Whether the losses were handed over as a closure."""
    every: int
    """Steps between two updates in the long run."""
    blocks: int
    """Pairs of ``every`` steps of each."""
    fixed_ms: float
    """Milliseconds of a step with fixed weights."""
    ratio: float
    """In the long run: the whole of the one over the whole of the other."""
    low: float
    """Lower quartile over pairs of blocks."""
    high: float
    """Upper quartile."""
    steps: int
    """Of a run from its start."""
    whole: float
    """The ratio over that run, in which updates come more often at first: from ``ratio`` and their number."""


@dataclass(frozen=True)
class Settled:
    """A step after the weights have settled, against one with fixed weights."""

    kind: str
    num_aux: int
    operations: int
    """Of torch, in the whole training step."""
    fixed_operations: int
    by_hand_operations: int
    """With a weighted sum that a user wrote, without a Reweighter."""
    ratio: float
    """Of times, which should differ by chance only."""
    low: float
    high: float


@dataclass(frozen=True)
class Phase:
    """A part of a step that updates the weights."""

    kind: str
    num_aux: int
    closure: bool
    name: str
    ms: float
    share: float
    """Of the whole step."""


@dataclass(frozen=True)
class Operation:
    """One of the operations that take the most time in a step that updates the weights."""

    closure: bool
    name: str
    calls: int
    ms: float
    """Without the operations it calls itself."""


@dataclass(frozen=True)
class Scaled:
    """One way with one size of the problem changed."""

    axis: str
    value: int
    name: str
    ms: float
    ratio: float
    peak_bytes: int | None
    extra_bytes: int | None


@dataclass(frozen=True)
class OnProcesses:
    """One way on a number of processes that share out a batch."""

    kind: str
    num_aux: int
    name: str
    processes: int
    ddp_messages: int
    ddp_bytes: int
    """What DDP sends of gradients in every step."""
    update_messages: int
    update_bytes: int
    """What the Reweighter sends in a step that updates."""
    ms: float
    low: float
    """Lower quartile."""
    high: float
    """Upper quartile."""
    n: int
    """Turns."""
    refused: int
    """Turns in which the way noticed that it would have been wrong; not among the ``n``."""
    ratio: float
    """To a step with fixed weights on as many processes."""


@dataclass(frozen=True)
class Result:
    """All of it; parts that were not measured are empty."""

    settings: dict[str, Any]
    environment: dict[str, str]
    kinds: tuple[KindFacts, ...] = ()
    timings: tuple[Row, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    schedule: tuple[WholeRun, ...] = ()
    settled: tuple[Settled, ...] = ()
    phases: tuple[Phase, ...] = ()
    operations: tuple[Operation, ...] = ()
    scaling: tuple[Scaled, ...] = ()
    processes: tuple[OnProcesses, ...] = ()

    def row(self, kind: str, name: str, num_aux: int) -> Row | None:
        """The measurement of one case, if there is one."""
        wanted = (kind, name, num_aux)
        return next((row for row in self.timings if (row.kind, row.name, row.num_aux) == wanted), None)

    def num_aux(self) -> list[int]:
        """Every K that was measured."""
        return sorted({row.num_aux for row in self.timings})


def write(result: Result, folder: Path, more: Mapping[str, Any]) -> Path:
    """Writes ``cost.json`` into ``folder``, with what else there is to say."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / COST
    path.write_text(json.dumps({**asdict(result), **more}, indent=1) + "\n")
    return path


def read(path: Path) -> Result:
    """What :func:`write` wrote."""
    found = json.loads(path.read_text())
    parts = {
        "kinds": KindFacts,
        "timings": Row,
        "refusals": Refusal,
        "schedule": WholeRun,
        "settled": Settled,
        "phases": Phase,
        "operations": Operation,
        "scaling": Scaled,
        "processes": OnProcesses,
    }
    try:
        made = {name: tuple(part(**one) for one in found[name]) for name, part in parts.items()}
        return replace(
            Result(found["settings"], found["environment"]),
            **made,  # type: ignore[arg-type]
        )
    except (KeyError, TypeError) as error:
        names = ", ".join(part.name for part in fields(Result))
        raise ValueError(
            f"{path} is no result of `arml bench`, or one of another version ({error!r}). It should hold {names}."
        ) from error
