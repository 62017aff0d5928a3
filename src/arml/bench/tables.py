"""A result as tables."""

from collections.abc import Iterable, Sequence

from arml.bench.contenders import DUAL, FIXED, GRAPH
from arml.bench.cost_targets import MOST, CostTarget
from arml.bench.expected_traffic import expected_costs
from arml.bench.lab_table import lab_sheet
from arml.bench.process_tables import expected_sheet, processes_sheet
from arml.bench.recommended_run import run_ratio
from arml.bench.result import KindFacts, Result, StepCost
from arml.report.tables.sheet import Cell, Sheet, text
from arml.schedule import Growing

MEMORY = (
    "Memory: the most that tensors take at once during the step (activations, graphs, gradients, workspaces), beyond "
    "what parameters, optimiser and data always take. Every allocation of one step is counted."
)
HUGE = 1_000_000_000
"""Parameters of a network that does not fit here."""


def sheets(result: Result, judged: Sequence[CostTarget]) -> list[Sheet]:
    """All tables that have rows."""
    by_kind = [sheet for facts in result.kinds for sheet in (time_sheet(result, facts), memory_sheet(result, facts))]
    every = result.schedule[0].every if result.schedule else Growing().most
    others = (
        growth_sheet(result),
        schedule_sheet(result),
        recommended_sheet(result),
        phases_sheet(result),
        operations_sheet(result),
        *(scaling_sheet(result, axis) for axis in dict.fromkeys(one.axis for one in result.scaling)),
        processes_sheet(result),
        lab_sheet(result),
        *([expected_sheet(expected_costs(HUGE, MOST, every=every), HUGE, MOST, every)] if result.processes else []),
        targets_sheet(judged),
    )
    return [sheet for sheet in (*by_kind, *others) if sheet.rows]


def time_sheet(result: Result, facts: KindFacts) -> Sheet:
    """Ratios on one kind of network: rows are contenders, columns K."""
    columns = result.num_aux()
    cells = {name: [_ratio(result.timing(facts.name, name, k)) for k in columns] for name in facts.ways}
    fixed = [_milliseconds(result.timing(facts.name, FIXED, k)) for k in columns]
    return Sheet(
        f"{facts.name}, batch {facts.batch}: time of a training step; {FIXED} = 1",
        ("", *(f"K = {k}" for k in columns)),
        (*((text(name), *row) for name, row in cells.items()), (text(f"{FIXED}, in ms"), *fixed)),
        (f"Median ± half the distance between the quartiles. {_turns(result, facts)}", *_footnotes(result, facts)),
    )


def memory_sheet(result: Result, facts: KindFacts) -> Sheet:
    """Memory beyond a step with fixed weights on one kind of network: rows are contenders, columns K."""
    columns = result.num_aux()
    named = {name: [result.timing(facts.name, name, k) for k in columns] for name in facts.ways}
    known = {name: costs for name, costs in named.items() if any(one and one.peak_bytes is not None for one in costs)}
    cells = {name: [_bytes(one, facts) for one in costs] for name, costs in known.items()}
    return Sheet(
        f"{facts.name}, batch {facts.batch}: peak memory beyond a step with {FIXED}, in MB",
        ("", *(f"K = {k}" for k in columns)),
        tuple((text(f"{name}, all of it" if name == FIXED else name), *row) for name, row in cells.items()),
        (f"In brackets: in units of the P = {facts.parameters:,} shared parameters of 4 bytes each.", MEMORY),
    )


def _ratio(cost: StepCost | None) -> Cell:
    return Cell("-") if cost is None else Cell(f"{cost.ratio:.1f} ± {cost.spread():.1f}", cost.ratio)


def _milliseconds(cost: StepCost | None) -> Cell:
    return Cell("-") if cost is None else Cell(f"{1000 * cost.median:.1f}", 1000 * cost.median)


def _bytes(cost: StepCost | None, facts: KindFacts) -> Cell:
    found = None if cost is None else cost.peak_bytes if cost.name == FIXED else cost.extra_bytes
    if found is None:
        return Cell("-")
    return Cell(f"{found / 1e6:.1f} ({found / 4 / facts.parameters:.2f} P)", found / 1e6)


def _turns(result: Result, facts: KindFacts) -> str:
    """The n of every row, the most frequent n first."""
    numbers: dict[int, list[str]] = {}
    for one in result.timings:
        if one.kind == facts.name:
            numbers.setdefault(one.n, []).append(one.name)
    most, *others = sorted(numbers, key=lambda n: -len(numbers[n]))
    return f"n = {most} turns each" + "".join(f"; {n} for {_join_names(numbers[n])}" for n in others) + "."


def _join_names(names: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(names))


def _footnotes(result: Result, facts: KindFacts) -> list[str]:
    """Why cells are empty or have fewer turns; each reason once."""
    reasons: dict[str, list[str]] = {}
    for one in result.refusals:
        if one.kind == facts.name:
            stopped = result.timing(one.kind, one.name, one.num_aux) is not None
            reasons.setdefault(one.reason, []).append(f"{one.name} stopped early" if stopped else one.name)
    return [f"-: {_join_names(names)}: {reason.rstrip('.')}." for reason, names in reasons.items()]


def growth_sheet(result: Result) -> Sheet:
    """How much more the largest K costs than the smallest, for contenders measured at both."""
    few, most = min(result.num_aux(), default=0), max(result.num_aux(), default=0)
    rows = []
    for first in (one for one in result.timings if one.num_aux == few < most and one.name != FIXED):
        last = result.timing(first.kind, first.name, most)
        if last is not None:
            factors = (last.median / first.median, last.ratio / first.ratio)
            rows.append((text(f"{first.kind}: {first.name}"), *(Cell(f"x {factor:.2f}", factor) for factor in factors)))
    return Sheet(
        f"From K = {few} to K = {most}",
        ("", "seconds of a step", f"ratio to {FIXED}"),
        tuple(rows),
        ("A step with fixed weights also takes longer with more tasks: each task has a head and a loss.",),
        brief=False,
    )


def schedule_sheet(result: Result) -> Sheet:
    """Whole runs with learned weights."""
    rows = tuple(
        (
            text(f"{run.kind}, K = {run.num_aux}, {'with a' if run.closure else 'no'} closure"),
            Cell(str(run.every), run.every),
            Cell(f"{run.fixed_ms:.1f}", run.fixed_ms),
            Cell(f"{run.ratio:.3f}", run.ratio),
            text(f"{run.low:.3f} to {run.high:.3f}"),
            Cell(str(run.blocks), run.blocks),
            Cell(f"{run.whole:.3f}", run.whole),
        )
        for run in result.schedule
    )
    return Sheet(
        f"A whole run with the default schedule, before the weights settle; {FIXED} = 1",
        ("", "every", f"{FIXED}, ms per step", "in the long run", "quartiles", "pairs of blocks", "whole run"),
        rows,
        (
            "Steps take turns, one of each. A block is the steps from one update to the next.",
            *(f"Whole run: the first {steps} steps, with more updates at first." for steps in _steps(result)),
        ),
    )


def _steps(result: Result) -> list[int]:
    return list(dict.fromkeys(run.steps for run in result.schedule))


def recommended_sheet(result: Result) -> Sheet:
    """Steps of the recommended method, and how many of them a short run has."""
    steps = result.recommended
    rows = tuple(
        (
            text(one.name),
            Cell(f"{one.ratio:.3f}", one.ratio),
            text(f"{one.low:.3f} to {one.high:.3f}"),
            Cell(str(one.n), one.n),
            Cell(str(one.in_run), one.in_run),
        )
        for one in steps
    )
    total, where = sum(one.in_run for one in steps), f"{steps[0].kind}, K = {steps[0].num_aux}" if steps else ""
    return Sheet(
        f"{where}: a training step of the recommended method; {FIXED} = 1",
        ("", "time", "quartiles", "turns", f"of {total} steps"),
        rows,
        (
            "Steps take turns. The quartiles are those of pairs of turns.",
            *([f"A run of {total} steps from its start: {run_ratio(steps):.3f}."] if total else []),
        ),
    )


def phases_sheet(result: Result) -> Sheet:
    """The parts of a step that updates."""
    rows = tuple(
        (
            text(f"{_closure(one.closure)}: {one.name}"),
            Cell(f"{one.ms:.1f}", one.ms),
            Cell(f"{one.share:.1%}", 100 * one.share),
        )
        for one in result.phases
    )
    where = f"{result.phases[0].kind}, K = {result.phases[0].num_aux}" if result.phases else ""
    return Sheet(
        f"{where}: where the time of a step that updates goes",
        ("", "ms", "share"),
        rows,
        ("Parts are timed one by one inside the same step; medians over steps.",),
    )


def operations_sheet(result: Result) -> Sheet:
    """The operations that take the most time."""
    rows = tuple(
        (
            text(f"{_closure(one.closure)}: {one.name}"),
            Cell(str(one.calls), one.calls),
            Cell(f"{one.ms:.1f}", one.ms),
        )
        for one in result.operations
    )
    note = "Wall time by torch's profiler, which slows the step down a little, without the operations each one calls."
    return Sheet(
        "The most expensive operations of a step that updates", ("", "calls", "ms"), rows, (note,), brief=False
    )


def _closure(closure: bool) -> str:
    return "closure" if closure else "no closure"


def scaling_sheet(result: Result, axis: str) -> Sheet:
    """Time and memory against one size of the problem."""
    found = [one for one in result.scaling if one.axis == axis]
    cells = {(one.value, one.name): one for one in found}
    values = list(dict.fromkeys(one.value for one in found))
    rows = []
    for value in values:
        fixed, *ours = (cells[value, name] for name in (FIXED, GRAPH, DUAL))
        ratios = [Cell(f"{one.ratio:.2f}", one.ratio) for one in ours]
        extras = [Cell(_megabytes(one.extra_bytes)) for one in ours]
        peak = Cell(_megabytes(fixed.peak_bytes))
        rows.append((text(f"{value:,}"), Cell(f"{fixed.ms:.1f}", fixed.ms), *ratios, peak, *extras))
    return Sheet(
        f"Cost against {axis}; {FIXED} = 1",
        (axis, f"{FIXED}, ms", GRAPH, DUAL, f"{FIXED}, MB", f"{GRAPH}, MB more", f"{DUAL}, MB more"),
        tuple(rows),
        (MEMORY,),
        brief=False,
    )


def _megabytes(found: int | None) -> str:
    return "-" if found is None else f"{found / 1e6:.1f}"


def targets_sheet(judged: Sequence[CostTarget]) -> Sheet:
    """Limits and measured numbers; the notes say why targets are not met, and which were not measured."""
    rows = tuple(
        (
            text(target.name),
            Cell(f"≤ {target.limit:g}"),
            Cell(f"{target.measured:.2f}"),
            Cell(target.outcome(), strong=not target.met),
            text(target.details),
        )
        for target in judged
        if target.measured is not None
    )
    unknown = [target.name for target in judged if target.measured is None]
    notes = [
        *(f"Not met: {target.name}: {target.reason}." for target in judged if target.met is False),
        *([f"Not measured: {_join_names(unknown)}."] if unknown else []),
    ]
    return Sheet("Targets", ("", "target", "measured", "", "from"), rows, tuple(notes))
