"""Many runs side by side: one process a core, one thread a process."""

import multiprocessing
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import NamedTuple

import torch

from arml.lab.run import Run, is_done

Work = Callable[[Run, Path], None]
"""Trains a run into a folder, going on from its checkpoint if there is one. Sent to other processes by name."""


class Outcome(NamedTuple):
    """How a run ended."""

    run: Run
    folder: Path
    failure: str | None
    """What went wrong, with the place; ``None`` if nothing did."""


def run_all(
    runs: Sequence[Run], root: Path, work: Work, *, workers: int, watch: Callable[[Outcome], None] = lambda _: None
) -> list[Outcome]:
    """Every run in its folder below ``root``. Finished ones are not repeated, failing ones do not stop the rest."""
    outcomes = [Outcome(run, root / run.name(), None) for run in runs if is_done(root / run.name())]
    for outcome in outcomes:
        watch(outcome)
    waiting = [run for run in runs if not is_done(root / run.name())]
    while waiting:
        ended, waiting = _until_a_process_dies(waiting, root, work, workers, watch)
        outcomes += ended
    return outcomes


def _until_a_process_dies(
    runs: Sequence[Run], root: Path, work: Work, workers: int, watch: Callable[[Outcome], None]
) -> tuple[list[Outcome], list[Run]]:
    """Outcomes of the runs that ended, and the runs that are left because a process was killed under them.

    The pool cannot say which run killed it. The oldest unfinished ones, which the processes were working on, count as
    failed; the others get a new pool.
    """
    outcomes: list[Outcome] = []
    pool = ProcessPoolExecutor(
        workers, multiprocessing.get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)
    )
    with pool:
        futures: dict[Future[str | None], Run] = {
            pool.submit(_attempt, work, run, root / run.name()): run for run in runs
        }
        for future in as_completed(futures):
            run = futures[future]
            if isinstance(future.exception(), BrokenProcessPool):
                continue
            outcomes.append(Outcome(run, root / run.name(), future.result()))
            watch(outcomes[-1])
    left = [run for run in runs if run not in {outcome.run for outcome in outcomes}]
    for run in left[:workers]:
        outcomes.append(Outcome(run, root / run.name(), "The process was killed from outside or ran out of memory."))
        watch(outcomes[-1])
    return outcomes, left[workers:]


def _attempt(work: Work, run: Run, folder: Path) -> str | None:
    try:
        work(run, folder)
    except Exception:  # noqa: BLE001 -- whatever it is, the other runs go on
        return traceback.format_exc()
    return None
