"""The table of whole steps of ``arml train``."""

from arml.bench.result import LabStep, Result
from arml.report.tables.sheet import Cell, Sheet, text


def lab_sheet(result: Result) -> Sheet:
    """Images per second, and the parts of a step outside the passes of the network."""
    notes = [
        "Ratio: the whole step; the passes in it, of the trunk forwards and of all backwards, and the update of the "
        "weights = 1. Losses: augmentation, heads and losses. Optimiser: with the teacher. Memory: the peak of a step "
        "beyond parameters, optimiser and data.",
    ]
    if result.lab_processes:
        one, two = result.lab_processes
        notes.append(
            f"Supervised learning, wall clock: {one:.2f} s per step on one process, {two:.2f} s on two that share the "
            f"batch: {one / two:.2f} times as fast."
        )
    return Sheet(
        "Whole steps of arml train, paper preset",
        ("", "network", "images", "ms", "images per s", "ratio", "data", "losses", "optimiser", "GFLOP", "memory, MB"),
        tuple(_cells(one) for one in result.lab),
        tuple(notes),
    )


def _cells(one: LabStep) -> tuple[Cell, ...]:
    rate = 1000 * one.images / one.ms
    shares = (Cell(f"{100 * share:.1f} %", share) for share in (one.data, one.losses, one.optimiser))
    return (
        text(f"{one.setting} {one.learner}"),
        text(one.network),
        Cell(str(one.images), one.images),
        Cell(f"{one.ms:.0f}", one.ms),
        Cell(f"{rate:.1f}", rate),
        Cell(f"{one.ratio:.3f}", one.ratio),
        *shares,
        Cell(f"{one.gflops:.1f}", one.gflops),
        Cell(f"{one.peak_bytes / 1e6:.0f}", one.peak_bytes),
    )
