"""Many runs side by side, on this machine or on a cluster."""

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from arml.lab.engines import Ended, Engine, EngineSettings, Job, Local, Work
from arml.lab.environment import data_folder
from arml.lab.launch import train_in_worker
from arml.lab.run import Run
from arml.lab.run_folder import FAILURE, is_done, write_whole
from arml.lab.runs_root import RunsRoot, open_root
from arml.lab.stopping import Stop, Stopped, stop_on_signals

LAST_WORDS = 8.0
"""Seconds that runs have for a checkpoint when a sweep is stopped."""
TRY_AGAIN = 1.0
"""Seconds until a folder that somebody else held is tried again."""
TICK = 0.2
"""Seconds between two looks at requests to stop."""


class Outcome(NamedTuple):
    """How a run ended."""

    run: Run
    folder: Path
    failure: str | None
    """What went wrong, with its traceback; ``None`` if nothing did."""


def run_all(
    runs: Sequence[Run],
    root: Path | str,
    *,
    data_dir: Path | None = None,
    workers: int = 2,
    device: str = "auto",
    engine: EngineSettings | None = None,
    work: Work | None = None,
    watch: Callable[[Outcome], None] = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
) -> list[Outcome]:
    """Trains every run in its folder below ``root``. Finished runs are not repeated; failing ones do not stop the rest.

    A run whose process or machine disappears is tried again from its checkpoint. One that another command is training
    is waited for. Ctrl-C and SIGTERM end the sweep within seconds: runs in progress write a checkpoint.

    Args:
        runs: what to train.
        root: where the folders of runs are made. The folder of a failed run says why, in ``failure.txt``.
        data_dir: where data sets are; ``None``: the environment variable ARML_DATA, or ``data``.
        workers: how many processes train at the same time.
        device: where to train: auto, cpu, cuda, cuda:1, mps; without a number, runs spread over all devices.
        engine: where runs are trained; ``None``: in ``workers`` processes of this machine.
        work: what a process does with a run; ``None``: train it.
        watch: is shown every outcome at once.
        note: is told what else happens, such as a run that is tried again.

    Raises:
        Stopped: After Ctrl-C or SIGTERM. The same call continues where this one ended.
    """
    place = open_root(root)
    place.local.mkdir(parents=True, exist_ok=True)
    place.pull_finished()
    data = (data_folder() if data_dir is None else data_dir).absolute()
    work = work or partial(train_in_worker, root=place, data_dir=data, device=device)
    sweep = _Sweep(place, engine or Local(workers), watch, note)
    sweep.train([Job(run, place.local.absolute() / run.name()) for run in dict.fromkeys(runs)], work)
    return sweep.outcomes


class _Sweep:
    """Which runs wait, which are in progress, and how the others ended."""

    def __init__(
        self,
        root: RunsRoot,
        settings: EngineSettings,
        watch: Callable[[Outcome], None],
        note: Callable[[str], None],
    ) -> None:
        self.outcomes: list[Outcome] = []
        self._root, self._settings, self._watch, self._note = root, settings, watch, note
        self._waiting: deque[Job] = deque()
        self._held: dict[Job, float] = {}
        self._tries: Counter[Job] = Counter()

    def train(self, jobs: Sequence[Job], work: Work) -> None:
        """Trains all jobs that are not done."""
        for job in jobs:
            if is_done(job.folder):
                self._end(job, None)
            else:
                self._waiting.append(job)
        if not self._waiting:
            return
        engine = self._settings.start(work)
        try:
            with stop_on_signals() as stop:  # after the start of the engine: Ray has handlers of its own
                self._train_waiting(engine, len(jobs), stop)
        finally:
            engine.close()

    def _train_waiting(self, engine: Engine, total: int, stop: Stop) -> None:
        while len(self.outcomes) < total:
            if stop:
                engine.stop(LAST_WORDS)
                done = sum(outcome.failure is None for outcome in self.outcomes)
                raise Stopped(
                    stop.reason,
                    f"stopped; {done} of {total} runs are complete, the same command continues with the rest",
                )
            while self._waiting and engine.has_room():
                engine.submit(self._waiting.popleft())
            for ended in engine.poll(TICK):
                self._handle(ended)
            self._wake_held()

    def _handle(self, ended: Ended) -> None:
        job = ended.job
        if ended.how == "held":
            if job not in self._held:
                self._note(f"waiting: {ended.text}")
            self._held[job] = time.monotonic() + TRY_AGAIN
        elif ended.how == "lost":
            self._try_again(job, ended.text)
        else:
            self._end(job, ended.text if ended.how == "failed" else None)

    def _try_again(self, job: Job, reason: str) -> None:
        self._tries[job] += 1
        if self._tries[job] < self._settings.attempts:
            self._note(f"trying again from its checkpoint: {job.run.name()}: {reason}")
            self._waiting.append(job)
        else:
            self._end(job, f"Given up after {self._tries[job]} attempts: {reason}.")

    def _wake_held(self) -> None:
        """Runs that somebody else was training: complete by now, or worth another try."""
        now = time.monotonic()
        for job in [job for job, when in self._held.items() if when <= now]:
            self._held[job] = float("inf")
            self._waiting.append(job)

    def _end(self, job: Job, failure: str | None) -> None:
        outcome = Outcome(job.run, self._root.local / job.folder.name, failure)
        if failure is not None:
            outcome.folder.mkdir(parents=True, exist_ok=True)
            write_whole(outcome.folder / FAILURE, failure.encode(errors="replace"))
            self._root.push(outcome.folder.name)
        self.outcomes.append(outcome)
        self._watch(outcome)
