"""Many runs side by side: one process per core, one thread per process."""

import multiprocessing
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

from arml.lab.environment import data_folder
from arml.lab.launch import train_in_worker
from arml.lab.run import Run, is_done

Work = Callable[[Run, Path], None]
"""Trains a run into a folder, from its checkpoint if there is one. Sent to other processes by name."""


class Outcome(NamedTuple):
    """How a run ended."""

    run: Run
    folder: Path
    failure: str | None
    """What went wrong, with its traceback; ``None`` if nothing did."""


def run_all(
    runs: Sequence[Run],
    root: Path,
    *,
    data_dir: Path | None = None,
    workers: int = 2,
    device: str = "auto",
    work: Work | None = None,
    watch: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """Trains every run in its folder below ``root``. Finished runs are not repeated; failing ones do not stop the rest.

    Args:
        runs: what to train.
        root: where the folders of runs are made. The folder of a failed run says why, in ``failure.txt``.
        data_dir: where data sets are; ``None``: the environment variable ARML_DATA, or ``data``.
        workers: how many processes train at the same time.
        device: where to train: auto, cpu, cuda, cuda:1, mps; without a number, runs spread over all devices.
        work: what a process does with a run; ``None``: train it.
        watch: is shown every outcome at once.
    """
    root.mkdir(parents=True, exist_ok=True)
    work = work or partial(train_in_worker, data_dir=data_folder() if data_dir is None else data_dir, device=device)
    outcomes = [Outcome(run, root / run.name(), None) for run in runs if is_done(root / run.name())]
    for outcome in outcomes:
        watch(outcome)
    waiting = [run for run in runs if not is_done(root / run.name())]
    while waiting:
        ended, waiting = _run_until_a_process_dies(waiting, root, work, workers, watch)
        outcomes += ended
    return outcomes


def _run_until_a_process_dies(
    runs: Sequence[Run], root: Path, work: Work, workers: int, watch: Callable[[Outcome], None]
) -> tuple[list[Outcome], list[Run]]:
    """Outcomes of the runs that ended, and the runs that are left because a process was killed.

    The pool cannot say which run killed it. The oldest unfinished ones, on which the processes were working, count as
    failed; the others get a new pool.
    """
    outcomes: list[Outcome] = []

    def end(run: Run, failure: str | None) -> None:
        outcomes.append(Outcome(run, root / run.name(), failure))
        _keep_reason(outcomes[-1])
        watch(outcomes[-1])

    pool = ProcessPoolExecutor(
        workers, multiprocessing.get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)
    )
    with pool:
        futures: dict[Future[str | None], Run] = {
            pool.submit(_attempt, work, run, root / run.name()): run for run in runs
        }
        for future in as_completed(futures):
            if not isinstance(future.exception(), BrokenProcessPool):
                end(futures[future], future.result())
    left = [run for run in runs if run not in {outcome.run for outcome in outcomes}]
    for run in left[:workers]:
        end(run, "The process was killed from outside or ran out of memory.")
    return outcomes, left[workers:]


def _attempt(work: Work, run: Run, folder: Path) -> str | None:
    try:
        work(run, folder)
    except Exception:  # noqa: BLE001 -- whatever it is, the other runs go on
        return traceback.format_exc()
    return None


def _keep_reason(outcome: Outcome) -> None:
    if outcome.failure is not None:
        outcome.folder.mkdir(parents=True, exist_ok=True)
        (outcome.folder / "failure.txt").write_text(outcome.failure)
