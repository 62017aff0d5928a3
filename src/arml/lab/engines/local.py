"""Worker processes of this machine, one run at a time each. Only the run of a worker that dies is affected."""

import multiprocessing
import os
import signal
import threading
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

import torch

from arml.lab.engines.base import Ended, Job, Work, attempt
from arml.lab.memory import keep_freed_memory
from arml.lab.stopping import Stop, stop_on_signals

LAST_WORDS = 20.0
"""Seconds that a worker has for a checkpoint after its parent is gone."""


@dataclass(frozen=True)
class Local:
    """Processes of this machine."""

    workers: int = 2
    """Number of runs side by side, each with one thread."""
    attempts: int = 2
    """A run whose process was killed is tried once more, from its checkpoint."""

    def start(self, work: Work) -> "LocalEngine":
        """Starts the engine; processes begin with their first run."""
        return LocalEngine(work, self.workers)


class LocalEngine:
    """Hands runs to worker processes. They stay for many runs: importing torch takes seconds."""

    def __init__(self, work: Work, workers: int) -> None:
        self._work, self._most = work, workers
        self._workers: list[_Worker] = []

    def has_room(self) -> bool:
        """Whether a worker is idle, or another may be started."""
        return len(self._workers) < self._most or any(worker.job is None for worker in self._workers)

    def submit(self, job: Job) -> None:
        """Gives the job to an idle worker, or to a new one."""
        idle = next((worker for worker in self._workers if worker.job is None and worker.give(job)), None)
        if idle is None:
            self._workers.append(_Worker(self._work))
            self._workers[-1].give(job)

    def poll(self, seconds: float) -> list[Ended]:
        """What workers report, and the runs of those that died."""
        busy = [worker for worker in self._workers if worker.job is not None]
        wait([handle for worker in busy for handle in worker.handles()], seconds)
        ended = [result for worker in busy if (result := worker.result()) is not None]
        self._workers = [worker for worker in self._workers if worker.is_alive()]
        return ended

    def stop(self, seconds: float) -> None:
        """SIGTERM to every worker, which then writes a checkpoint and ends; SIGKILL after ``seconds``."""
        for worker in self._workers:
            worker.process.terminate()
        deadline = time.monotonic() + seconds
        while any(worker.job is not None for worker in self._workers) and time.monotonic() < deadline:
            self.poll(0.1)  # a worker that reports has its checkpoint on disk
        self.close()

    def close(self) -> None:
        """Ends all workers; runs in progress are killed."""
        for worker in self._workers:
            worker.process.kill()
            worker.process.join()
            worker.connection.close()
            worker.lifeline.close()
        self._workers = []


class _Worker:
    """A process, and the pipes to it."""

    def __init__(self, work: Work) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        watched, self.lifeline = context.Pipe(duplex=False)  # closes when this process ends, however it ends
        self.process = context.Process(target=_serve, args=(theirs, watched, work), daemon=True)
        self.job: Job | None = None
        # Ctrl-C reaches all processes of a terminal. The parent alone decides, so workers never see it.
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)
        theirs.close()
        watched.close()

    def give(self, job: Job) -> bool:
        """Sends a job; false if the worker has died."""
        try:
            self.connection.send(job)
        except OSError:
            return False
        self.job = job
        return True

    def handles(self) -> list[Any]:
        """What becomes ready when there is something to know."""
        return [self.connection, self.process.sentinel]

    def is_alive(self) -> bool:
        """Whether it can take another job."""
        return self.job is not None or self.process.is_alive()

    def result(self) -> Ended | None:
        """How its job ended; ``None`` if it has not."""
        job = self.job
        if job is None:
            return None
        ended: Ended | None = None
        try:
            if self.connection.poll():
                ended = self.connection.recv()
        except (OSError, EOFError):
            self.process.join()
        if ended is None and not self.process.is_alive():
            ended = Ended(job, "lost", f"its process was killed ({_describe_exit(self.process.exitcode)})")
        self.job = None if ended is not None else job
        return ended


def _describe_exit(code: int | None) -> str:
    if code is not None and code < 0:
        hint = ", as the system does when memory runs out" if code == -signal.SIGKILL else ""
        return f"signal {-code}{hint}"
    return f"exit code {code}"


def _serve(connection: Connection, lifeline: Connection, work: Work) -> None:
    """What a worker does: one job after the other, until it is asked to stop or its parent is gone."""
    torch.set_num_threads(1)
    keep_freed_memory()
    with stop_on_signals() as stop:
        threading.Thread(target=_watch_parent, args=(lifeline, stop), daemon=True).start()
        try:
            while not stop:
                if connection.poll(0.2):
                    connection.send(attempt(work, connection.recv(), stop))
        except (EOFError, OSError):
            return  # the parent is gone


def _watch_parent(lifeline: Connection, stop: Stop) -> None:
    """Asks for a stop when the parent is gone, and insists after a while."""
    lifeline.poll(None)
    stop.ask(signal.SIGTERM)
    time.sleep(LAST_WORDS)
    os._exit(128 + signal.SIGTERM)
