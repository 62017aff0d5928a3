"""What was measured, as tables."""

from collections.abc import Iterable, Sequence

from arml.bench.contenders import DUAL, FIXED, GRAPH
from arml.bench.cost_targets import MOST, Target
from arml.bench.expected_traffic import expected
from arml.bench.process_tables import expected_sheet, processes_sheet
from arml.bench.result import KindFacts, Result, Row
from arml.report.tables.sheet import Cell, Sheet, text
from arml.schedule import Growing

MEMORY = (
    "Memory: the most that tensors take at once during the step (activations, graphs, gradients, workspaces), beyond "
    "what parameters, optimiser and data take all the time. One step, every allocation counted."
)
HUGE = 1_000_000_000
"""Parameters of a network for which there is no room here."""


def sheets(result: Result, judged: Sequence[Target]) -> list[Sheet]:
    """All tables that there is something for."""
    by_kind = [sheet for facts in result.kinds for sheet in (time_sheet(result, facts), memory_sheet(result, facts))]
    every = result.schedule[0].every if result.schedule else Growing().most
    others = (
        growth_sheet(result),
        schedule_sheet(result),
        phases_sheet(result),
        operations_sheet(result),
        *(scaling_sheet(result, axis) for axis in dict.fromkeys(one.axis for one in result.scaling)),
        processes_sheet(result),
        *([expected_sheet(expected(HUGE, MOST, every=every), HUGE, MOST, every)] if result.processes else []),
        targets_sheet(judged),
    )
    return [sheet for sheet in (*by_kind, *others) if sheet.rows]


def time_sheet(result: Result, facts: KindFacts) -> Sheet:
    """Ratios of a kind: rows are ways, columns K."""
    columns = result.num_aux()
    cells = {name: [_ratio(result.row(facts.name, name, k)) for k in columns] for name in facts.ways}
    fixed = [_milliseconds(result.row(facts.name, FIXED, k)) for k in columns]
    return Sheet(
        f"{facts.name}, batch {facts.batch}: time of a training step; {FIXED} = 1",
        ("", *(f"K = {k}" for k in columns)),
        (*((text(name), *row) for name, row in cells.items()), (text(f"{FIXED}, in ms"), *fixed)),
        (f"Median ± half the distance of the quartiles. {_turns(result, facts)}", *_footnotes(result, facts)),
    )


def memory_sheet(result: Result, facts: KindFacts) -> Sheet:
    """What a kind's ways take beyond a step with fixed weights: rows are ways, columns K."""
    columns = result.num_aux()
    named = {name: [result.row(facts.name, name, k) for k in columns] for name in facts.ways}
    measured = {name: rows for name, rows in named.items() if any(row and row.peak_bytes is not None for row in rows)}
    cells = {name: [_bytes(row, facts) for row in rows] for name, rows in measured.items()}
    return Sheet(
        f"{facts.name}, batch {facts.batch}: peak memory beyond a step with {FIXED}, in MB",
        ("", *(f"K = {k}" for k in columns)),
        tuple((text(f"{name}, all of it" if name == FIXED else name), *row) for name, row in cells.items()),
        (f"In brackets: in units of the P = {facts.parameters:,} shared parameters, 4 bytes each.", MEMORY),
    )


def _ratio(row: Row | None) -> Cell:
    return Cell("-") if row is None else Cell(f"{row.ratio:.1f} ± {row.spread():.1f}", row.ratio)


def _milliseconds(row: Row | None) -> Cell:
    return Cell("-") if row is None else Cell(f"{1000 * row.median:.1f}", 1000 * row.median)


def _bytes(row: Row | None, facts: KindFacts) -> Cell:
    found = None if row is None else row.peak_bytes if row.name == FIXED else row.extra_bytes
    if found is None:
        return Cell("-")
    return Cell(f"{found / 1e6:.1f} ({found / 4 / facts.parameters:.2f} P)", found / 1e6)


def _turns(result: Result, facts: KindFacts) -> str:
    """n of every row, those of most rows first."""
    numbers: dict[int, list[str]] = {}
    for row in result.timings:
        if row.kind == facts.name:
            numbers.setdefault(row.n, []).append(row.name)
    most, *others = sorted(numbers, key=lambda n: -len(numbers[n]))
    return f"n = {most} turns of each" + "".join(f"; {n} of {_listed(numbers[n])}" for n in others) + "."


def _listed(names: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(names))


def _footnotes(result: Result, facts: KindFacts) -> list[str]:
    """Why cells are empty or have fewer turns, each reason once."""
    reasons: dict[str, list[str]] = {}
    for one in result.refusals:
        if one.kind == facts.name:
            stopped = result.row(one.kind, one.name, one.num_aux) is not None
            reasons.setdefault(one.reason, []).append(f"{one.name} stopped early" if stopped else one.name)
    return [f"-: {_listed(names)}: {reason.rstrip('.')}." for reason, names in reasons.items()]


def growth_sheet(result: Result) -> Sheet:
    """How much more the largest K costs than the smallest, for ways that were measured at both."""
    few, most = min(result.num_aux(), default=0), max(result.num_aux(), default=0)
    rows = []
    for first in (row for row in result.timings if row.num_aux == few < most and row.name != FIXED):
        last = result.row(first.kind, first.name, most)
        if last is not None:
            factors = (last.median / first.median, last.ratio / first.ratio)
            rows.append((text(f"{first.kind}: {first.name}"), *(Cell(f"x {factor:.2f}", factor) for factor in factors)))
    return Sheet(
        f"From K = {few} to K = {most}",
        ("", "seconds of a step", f"ratio to {FIXED}"),
        tuple(rows),
        ("A step with fixed weights takes longer with more tasks, too: each has a head and a loss.",),
        brief=False,
    )


def schedule_sheet(result: Result) -> Sheet:
    """Whole runs."""
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
        ("", "every", f"{FIXED}, ms a step", "in the long run", "quartiles", "pairs of blocks", "whole run"),
        rows,
        (
            "Steps take turns, one of each. A block is as many steps as lie between two updates.",
            *(f"Whole run: the first {steps} steps, with more updates at first." for steps in _steps(result)),
        ),
    )


def _steps(result: Result) -> list[int]:
    return list(dict.fromkeys(run.steps for run in result.schedule))


def phases_sheet(result: Result) -> Sheet:
    """Parts of an update step."""
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
        ("Parts are timed one by one inside the same step, medians over steps.",),
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
    note = "Wall time by torch's profiler, which slows the step down a little; without what an operation calls itself."
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


def targets_sheet(judged: Sequence[Target]) -> Sheet:
    """What was asked for, and what came out; below, why targets are not met and which were not measured."""
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
        *([f"Not measured: {_listed(unknown)}."] if unknown else []),
    ]
    return Sheet("Targets", ("", "target", "measured", "", "from"), rows, tuple(notes))
