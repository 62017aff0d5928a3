"""The table of whole steps of ``arml train``."""

from arml.bench.result import LabStep, Result
from arml.report.tables.sheet import Cell, Sheet, text

LIMIT = 0.05
"""Data and bookkeeping should take less than this share of a step of the paper's preset."""


def lab_sheet(result: Result) -> Sheet:
    """Images per second, and the parts of a step outside the passes of the network."""
    notes = [
        "Ratio: the whole step; the passes in it, of the trunk forwards and of all backwards, and the update of the "
        "weights = 1. Losses: augmentation, heads and losses. Optimiser: with the teacher. Memory: the peak of a step "
        "beyond parameters, optimiser and data.",
        *_overhead(result),
        *_processes(result),
    ]
    return Sheet(
        "Whole steps of arml train, paper preset",
        ("", "network", "images", "ms", "images per s", "ratio", "data", "losses", "optimiser", "GFLOP", "memory, MB"),
        tuple(_cells(one) for one in result.lab),
        tuple(notes),
    )


def _overhead(result: Result) -> list[str]:
    """Whether data and bookkeeping stay below their limit."""
    if not result.lab:
        return []
    worst = max(result.lab, key=_share)
    verdict = "" if _share(worst) < LIMIT else ": missed. Small batches make the share larger"
    return [
        f"Data, losses and optimiser together take at most {100 * _share(worst):.1f} % of a step "
        f"({worst.setting} {worst.learner}); the aim is less than {100 * LIMIT:.0f} %{verdict}."
    ]


def _share(one: LabStep) -> float:
    return one.data + one.losses + one.optimiser


def _processes(result: Result) -> list[str]:
    """How much faster two processes are than one."""
    if not result.lab_processes:
        return []
    one, two = result.lab_processes
    notes = (
        f"Supervised learning, wall clock: {one:.2f} s per step on one process, {two:.2f} s on two that share the "
        f"batch: {one / two:.2f} times as fast."
    )
    if result.lab_processor:
        one, two = result.lab_processor
        notes += (
            f" Processor time of the busiest process: {one:.2f} s and {two:.2f} s: {one / two:.2f} times less, the "
            "most that two free cores could reach: waiting for the other is not counted."
        )
    return [notes]


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
