"""Tables of what several processes send each other: measured, and on paper."""

from collections.abc import Sequence

from arml.bench.contenders import FIXED
from arml.bench.expected_traffic import ExpectedCost
from arml.bench.result import ProcessCost, Result
from arml.report.tables.sheet import Cell, Sheet, text


def processes_sheet(result: Result) -> Sheet:
    """Messages and time of a step on one and on several processes."""
    where = f"{result.processes[0].kind}, K = {result.processes[0].num_aux}: " if result.processes else ""
    return Sheet(
        f"{where}processes that share a batch; {FIXED} on the same number of processes = 1",
        ("", "processes", "DDP sends", "the update sends", "ms", "quartiles", "turns", "ratio"),
        tuple(_measured_cells(one) for one in result.processes),
        (
            "Bytes that a process passes to all-reduces in one step, and the number of messages; both are exact. Times "
            "are wall-clock times, since processes wait for each other.",
        ),
        brief=False,
    )


def expected_sheet(costs: Sequence[ExpectedCost], num_parameters: int, num_aux: int, every: int) -> Sheet:
    """The expected cost on a network that does not fit here."""
    return Sheet(
        f"On paper: {num_parameters:,} parameters, {num_aux} tasks, several processes",
        ("", "passes", "ratio", "memory", "graphs", "DDP sends", "the update sends", "run", "run, bytes"),
        tuple(_expected_cells(one) for one in costs),
        (
            "Passes: work of a step that updates, in forward passes; a backward pass is two of them. Memory: what an "
            "update needs at its peak in addition to activations. Graphs: how many are kept at once.",
            f"Run: time, and bytes sent, of a run with an update every {every} steps; {FIXED} = 1. Libraries that "
            "store every gradient do so in every step.",
        ),
        brief=False,
    )


def _measured_cells(one: ProcessCost) -> tuple[Cell, ...]:
    return (
        text(one.name),
        Cell(str(one.processes), one.processes),
        text(_traffic(one.ddp_messages, one.ddp_bytes)),
        text(_traffic(one.update_messages, one.update_bytes)),
        Cell(f"{one.ms:.1f}", one.ms),
        text(f"{one.low:.1f} to {one.high:.1f}"),
        Cell(f"{one.n}, {one.refused} refused" if one.refused else str(one.n), one.n),
        Cell(f"{one.ratio:.2f}", one.ratio),
    )


def _expected_cells(one: ExpectedCost) -> tuple[Cell, ...]:
    return (
        text(one.name),
        Cell(str(one.passes), one.passes),
        Cell(f"{one.passes / 3:.2f}", one.passes / 3),
        text(_size(one.memory)),
        Cell(str(one.graphs), one.graphs),
        text(_size(one.gradients)),
        text(_traffic(*one.update)),
        Cell(f"{one.run_time:.2f}", one.run_time),
        Cell(f"{one.run_traffic:.2f}", one.run_traffic),
    )


def _traffic(messages: int, num_bytes: int) -> str:
    """Bytes and messages in words.

    >>> _traffic(3, 1520), _traffic(0, 0)
    ('1.52 kB in 3', 'nothing')
    """
    return f"{_size(num_bytes)} in {messages}" if messages else "nothing"


def _size(num_bytes: int) -> str:
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if num_bytes >= size:
            return f"{num_bytes / size:.2f} {unit}"
    return f"{num_bytes} B"
