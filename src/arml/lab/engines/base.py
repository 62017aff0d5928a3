"""What every engine does: it takes runs while it has room, and says how each of them ended."""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, TypeAlias

from arml.lab.folder_lock import HeldError
from arml.lab.run import Run
from arml.lab.stopping import Stop, Stopped

Work: TypeAlias = Callable[[Run, Path, Stop], None]
"""Trains a run into a folder, from its checkpoint if there is one, until it is asked to stop. Sent by name."""


class Job(NamedTuple):
    """A run and the folder it is trained in."""

    run: Run
    folder: Path


class Ended(NamedTuple):
    """A job that an engine no longer works on."""

    job: Job
    how: Literal["done", "failed", "held", "lost"]
    """held: another process has the folder; lost: the process or machine that trained it is gone."""
    text: str = ""
    """The traceback of a failure; who holds the folder; what happened to the process."""


class Engine(Protocol):
    """A running engine."""

    def has_room(self) -> bool:
        """Whether another job may be submitted now."""

    def submit(self, job: Job) -> None:
        """Begins a job, or lines it up."""

    def poll(self, seconds: float) -> list[Ended]:
        """Jobs that have ended since the last call; waits for one, but not longer than ``seconds``."""

    def stop(self, seconds: float) -> None:
        """Asks all jobs to write a checkpoint and end; ends them by force after ``seconds``."""

    def close(self) -> None:
        """Frees everything the engine holds."""


class EngineSettings(Protocol):
    """Which engine, and how it is set up."""

    @property
    def attempts(self) -> int:
        """How often a run is tried whose process or machine keeps disappearing."""

    def start(self, work: Work) -> Engine:
        """Starts an engine that does ``work`` for every job."""


def attempt(work: Work, job: Job, stop: Stop) -> Ended:
    """Does the work and says how it ended: whatever happens, other runs go on."""
    try:
        work(job.run, job.folder, stop)
    except HeldError as held:
        return Ended(job, "held", str(held))
    except Stopped:
        return Ended(job, "lost", "its process was asked to stop")
    except Exception:  # noqa: BLE001 -- whatever it is, the other runs go on
        return Ended(job, "failed", traceback.format_exc())
    return Ended(job, "done")
