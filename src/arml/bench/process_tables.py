"""What several processes send each other, as tables: measured, and on paper."""

from collections.abc import Sequence

from arml.bench.contenders import FIXED
from arml.bench.expected_traffic import Expected
from arml.bench.result import OnProcesses, Result
from arml.report.tables.sheet import Cell, Sheet, text


def processes_sheet(result: Result) -> Sheet:
    """Messages and time of a step on one and on several processes."""
    where = f"{result.processes[0].kind}, K = {result.processes[0].num_aux}: " if result.processes else ""
    return Sheet(
        f"{where}processes that share out a batch; {FIXED} on as many processes = 1",
        ("", "processes", "DDP sends", "the update sends", "ms", "quartiles", "turns", "ratio"),
        tuple(_measured(one) for one in result.processes),
        (
            "Bytes that a process hands to all-reduces in one step, and in how many messages; exact. Times are of the "
            "clock on the wall: processes wait for each other.",
        ),
        brief=False,
    )


def expected_sheet(rows: Sequence[Expected], num_parameters: int, num_aux: int, every: int) -> Sheet:
    """What to expect of a network that does not fit here."""
    return Sheet(
        f"On paper: {num_parameters:,} parameters, {num_aux} tasks, several processes",
        ("", "passes", "ratio", "memory", "graphs", "DDP sends", "the update sends", "run", "run, bytes"),
        tuple(_on_paper(row) for row in rows),
        (
            "Passes: work of a step that updates, in forward passes; a backward pass is two of them. Memory: what an "
            "update needs at its peak besides activations. Graphs: how many are kept at once.",
            f"Run: time, and bytes sent, of a run with an update every {every} steps; {FIXED} = 1. Those who store "
            "every gradient do so in every step.",
        ),
        brief=False,
    )


def _measured(one: OnProcesses) -> tuple[Cell, ...]:
    return (
        text(one.name),
        Cell(str(one.processes), one.processes),
        text(_sent(one.ddp_messages, one.ddp_bytes)),
        text(_sent(one.update_messages, one.update_bytes)),
        Cell(f"{one.ms:.1f}", one.ms),
        text(f"{one.low:.1f} to {one.high:.1f}"),
        Cell(f"{one.n}, {one.refused} refused" if one.refused else str(one.n), one.n),
        Cell(f"{one.ratio:.2f}", one.ratio),
    )


def _on_paper(row: Expected) -> tuple[Cell, ...]:
    return (
        text(row.way),
        Cell(str(row.passes), row.passes),
        Cell(f"{row.passes / 3:.2f}", row.passes / 3),
        text(_size(row.memory)),
        Cell(str(row.graphs), row.graphs),
        text(_size(row.gradients)),
        text(_sent(*row.update)),
        Cell(f"{row.run_time:.2f}", row.run_time),
        Cell(f"{row.run_traffic:.2f}", row.run_traffic),
    )


def _sent(messages: int, num_bytes: int) -> str:
    """How much in how many messages.

    >>> _sent(3, 1520), _sent(0, 0)
    ('1.52 kB in 3', 'nothing')
    """
    return f"{_size(num_bytes)} in {messages}" if messages else "nothing"


def _size(num_bytes: int) -> str:
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if num_bytes >= size:
            return f"{num_bytes / size:.2f} {unit}"
    return f"{num_bytes} B"
