"""Everything that was measured, as one JSON file. The fields of these classes are its keys."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

COST = "cost.json"


@dataclass(frozen=True)
class StepCost:
    """The step of one contender on one kind of network with K tasks."""

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
    """The number of turns."""
    ratio: float
    """The median relative to a step with fixed weights at the same K."""
    peak_bytes: int | None
    """The most memory that tensors take during a step, beyond what they took before it; ``None``: not measured."""
    extra_bytes: int | None
    """``peak_bytes`` beyond that of a step with fixed weights."""

    def spread(self) -> float:
        """Half the distance between the quartiles, in the unit of the ratio."""
        return (self.high - self.low) / 2 * self.ratio / self.median


@dataclass(frozen=True)
class KindFacts:
    """A kind of network, as it was measured."""

    name: str
    batch: int
    parameters: int
    """P, the number of shared parameters."""
    ways: tuple[str, ...]
    """Names of the contenders, in order."""


@dataclass(frozen=True)
class Refusal:
    """A contender that has no number, and why."""

    kind: str
    name: str
    num_aux: int
    reason: str


@dataclass(frozen=True)
class WholeRun:
    """Training with learned weights on the Reweighter's default schedule, before they settle, against fixed weights."""

    kind: str
    num_aux: int
    closure: bool
    """Whether the Reweighter got a closure."""
    every: int
    """Steps from one update to the next in the long run."""
    blocks: int
    """The number of pairs of blocks, a block being ``every`` steps."""
    fixed_ms: float
    """Milliseconds of a step with fixed weights."""
    ratio: float
    """Total time with learned weights over total time with fixed ones, in the long run."""
    low: float
    """Lower quartile over pairs of blocks."""
    high: float
    """Upper quartile."""
    steps: int
    """The length of a run from its start."""
    whole: float
    """The ratio over that run, computed from ``ratio`` and the number of updates, which come more often at first."""


@dataclass(frozen=True)
class SettledCost:
    """A step after the weights have settled, against one with fixed weights."""

    kind: str
    num_aux: int
    operations: int
    """Operations of torch in the whole training step."""
    fixed_operations: int
    by_hand_operations: int
    """The same for a weighted sum that a user writes, without a Reweighter."""
    ratio: float
    """The ratio of the times, which should differ by chance only."""
    low: float
    high: float


@dataclass(frozen=True)
class RecommendedStep:
    """A training step of the recommended method, against one with fixed weights."""

    kind: str
    num_aux: int
    name: str
    """What the step does."""
    in_run: int
    """The number of such steps in a short run with the method's own schedule."""
    n: int
    """The number of turns."""
    ratio: float
    """Total time over total time of the steps with fixed weights."""
    low: float
    """Lower quartile over pairs of turns."""
    high: float
    """Upper quartile."""


@dataclass(frozen=True)
class Phase:
    """A part of a step that updates the weights."""

    kind: str
    num_aux: int
    closure: bool
    name: str
    ms: float
    share: float
    """Fraction of the time of the whole step."""


@dataclass(frozen=True)
class Operation:
    """One of the operations that take the most time in a step that updates the weights."""

    closure: bool
    name: str
    calls: int
    ms: float
    """Milliseconds, without the operations that this one calls."""


@dataclass(frozen=True)
class ScaledCost:
    """The step of one contender when one size of the problem is changed."""

    axis: str
    value: int
    name: str
    ms: float
    ratio: float
    peak_bytes: int | None
    extra_bytes: int | None


@dataclass(frozen=True)
class ProcessCost:
    """A training step that updates the weights by one engine, on processes that share a batch."""

    kind: str
    num_aux: int
    name: str
    processes: int
    ddp_messages: int
    ddp_bytes: int
    """Gradients that DDP sends in every step, with fixed weights as well. Buffers, which it sends before a pass, do not
    count."""
    update_messages: int
    update_bytes: int
    """Sent by the Reweighter in a step that updates."""
    ms: float
    """Median of the milliseconds, as the first process measures them."""
    low: float
    """Lower quartile."""
    high: float
    """Upper quartile."""
    n: int
    """The number of turns."""
    refused: int
    """Turns in which the engine noticed that its answer would be wrong; not among the ``n``."""
    ratio: float
    """The median relative to a step with fixed weights on the same number of processes."""


@dataclass(frozen=True)
class LabStep:
    """A whole step of ``arml train``, with equal or learned weights as in the paper's protocol."""

    setting: str
    learner: str
    network: str
    images: int
    """Examples per step, as the samplers draw them."""
    threads: int
    processes: int
    n: int
    """The number of steps."""
    ms: float
    """Median of the milliseconds."""
    ratio: float
    """The step relative to the passes of the trunk in it, forwards and backwards."""
    data: float
    """Share of the time for reading examples."""
    losses: float
    """Share for augmentation, heads and losses."""
    optimiser: float
    """Share for the steps of the optimiser and the teacher."""
    gflops: float
    """Floating point operations of the step in 10^9, with equal weights."""
    peak_bytes: int


@dataclass(frozen=True)
class Result:
    """Everything that was measured; parts that were not are empty."""

    settings: dict[str, Any]
    environment: dict[str, str]
    kinds: tuple[KindFacts, ...] = ()
    timings: tuple[StepCost, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    schedule: tuple[WholeRun, ...] = ()
    settled: tuple[SettledCost, ...] = ()
    phases: tuple[Phase, ...] = ()
    operations: tuple[Operation, ...] = ()
    scaling: tuple[ScaledCost, ...] = ()
    processes: tuple[ProcessCost, ...] = ()
    recommended: tuple[RecommendedStep, ...] = ()
    lab: tuple[LabStep, ...] = ()
    lab_processes: tuple[float, ...] = ()
    """Seconds of a step of supervised learning with WRN-28-2 on one and on two processes that share the batch."""
    lab_processor: tuple[float, ...] = ()
    """The same in processor time of the busiest process, which other programs on the machine hardly change."""

    def timing(self, kind: str, name: str, num_aux: int) -> StepCost | None:
        """The measurement of one case, if it exists."""
        wanted = (kind, name, num_aux)
        return next((one for one in self.timings if (one.kind, one.name, one.num_aux) == wanted), None)

    def num_aux(self) -> list[int]:
        """Every K that was measured."""
        return sorted({one.num_aux for one in self.timings})


class Cost(NamedTuple):
    """The time of a step that updates the weights with K auxiliary tasks; a step with fixed weights takes 1."""

    name: str
    num_aux: int
    """K."""
    ratio: float
    low: float
    """Lower quartile of the turns."""
    high: float
    """Upper quartile."""
    kind: str = ""
    """The kind of network."""


def write_result(result: Result, folder: Path, more: Mapping[str, Any]) -> Path:
    """Write ``cost.json`` into ``folder``, with ``more`` keys."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / COST
    path.write_text(json.dumps({**asdict(result), **more}, indent=1) + "\n")
    return path


def read_result(path: Path) -> Result:
    """Read what :func:`write_result` wrote."""
    found = json.loads(path.read_text())
    parts = {
        "kinds": KindFacts,
        "timings": StepCost,
        "refusals": Refusal,
        "schedule": WholeRun,
        "settled": SettledCost,
        "phases": Phase,
        "operations": Operation,
        "scaling": ScaledCost,
        "processes": ProcessCost,
    }
    later = {"recommended": RecommendedStep, "lab": LabStep}  # files of older versions lack them
    try:
        made = {name: tuple(part(**one) for one in found[name]) for name, part in parts.items()}
        made |= {name: tuple(part(**one) for one in found.get(name, ())) for name, part in later.items()}
        return replace(
            Result(found["settings"], found["environment"]),
            **made,  # type: ignore[arg-type]
            lab_processes=tuple(found.get("lab_processes", ())),
            lab_processor=tuple(found.get("lab_processor", ())),
        )
    except (KeyError, TypeError) as error:
        names = ", ".join(part.name for part in fields(Result))
        raise ValueError(
            f"{path} is no result of `arml bench`, or one of another version ({error!r}). It should hold {names}."
        ) from error


def is_cost_file(path: Path) -> bool:
    """Whether ``path`` itself is to be read as a cost file."""
    return path.suffix == ".json" and path.is_file()


def cost_files(paths: Iterable[Path]) -> list[Path]:
    """The cost files that ``paths`` stand for, each once: JSON files, and every ``cost.json`` below a folder."""
    found: dict[Path, Path] = {}
    for path in paths:
        inside = [path] if is_cost_file(path) else sorted(path.rglob(COST)) if path.is_dir() else []
        found |= {p.resolve(): p for p in inside}
    return list(found.values())


def collect_costs(files: Sequence[Path]) -> tuple[list[Cost], list[tuple[Path, str]]]:
    """The times in all ``files``, and the files that cannot be read with the reason."""
    costs: list[Cost] = []
    skipped: list[tuple[Path, str]] = []
    for path in files:
        try:
            costs += [relative_cost(timing) for timing in json.loads(path.read_text())["timings"]]
        except (KeyError, TypeError, ValueError, ZeroDivisionError, OSError) as error:
            skipped.append((path, f"is no result of `arml bench`, or one of another version ({error!r})"))
    return costs, skipped


def relative_cost(timing: Mapping[str, Any]) -> Cost:
    """One of the ``timings`` of a cost file. Older files do not name the kind of network."""
    low, high = (timing["ratio"] * timing[q] / timing["median"] for q in ("low", "high"))
    return Cost(timing["name"], timing["num_aux"], timing["ratio"], low, high, timing.get("kind", ""))
