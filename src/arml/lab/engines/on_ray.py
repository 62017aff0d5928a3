"""Tasks of a Ray cluster. Ray places them; what happens after a worker or a machine dies is decided here."""

import logging
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch

from arml.lab.engines.base import Ended, Job, Work, attempt
from arml.lab.memory import keep_freed_memory
from arml.lab.stopping import stop_on_signals

QUIET = {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_DEDUP_LOGS": "0", "RAY_USAGE_STATS_ENABLED": "0"}
"""Ray leaves the visible GPUs alone for runs that ask for none, prints nothing and reports nothing to its makers."""


@dataclass(frozen=True)
class OnRay:
    """A Ray cluster, or a Ray of its own on this machine."""

    address: str = ""
    """Address of a running cluster, or auto; empty: start Ray on this machine for as long as the sweep takes."""
    cpus_per_run: float = 1.0
    """Cores that a run takes; it has as many threads, and at least one."""
    gpus_per_run: float = 0.0
    """GPUs that a run takes, also a share of one."""
    attempts: int = 3
    """How often a run is tried whose worker or machine keeps dying."""

    def start(self, work: Work) -> "RayEngine":
        """Connects to the cluster."""
        return RayEngine(work, self)


class RayEngine:
    """Hands all runs to Ray at once, which lines them up and may ask for more machines."""

    def __init__(self, work: Work, settings: OnRay) -> None:
        self._ray = _import_ray()
        self._started = not self._ray.is_initialized()
        if self._started:
            self._connect(settings.address)
        remote = self._ray.remote(
            num_cpus=settings.cpus_per_run, num_gpus=settings.gpus_per_run, max_retries=0, max_calls=0
        )
        self._train = remote(_train_on_worker)
        self._work, self._threads = work, max(1, int(settings.cpus_per_run))
        self._jobs: dict[Any, Job] = {}

    def _connect(self, address: str) -> None:
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        own = {} if address else {"include_dashboard": False}
        try:
            self._ray.init(
                address=address or "local",
                log_to_driver=False,
                logging_level=logging.ERROR,
                configure_logging=True,
                **own,
            )
        except ConnectionError as error:
            raise ValueError(
                f"There is no Ray cluster at {address!r}: {str(error).splitlines()[0]} Start one with "
                "`ray start --head`, or leave --address out to use this machine alone."
            ) from error

    def has_room(self) -> bool:
        """Ray lines up what it has no room for."""
        return True

    def submit(self, job: Job) -> None:
        """Lines the job up."""
        self._jobs[self._train.remote(self._work, job, self._threads)] = job

    def poll(self, seconds: float) -> list[Ended]:
        """Jobs whose task has ended, or whose worker or machine is gone."""
        if not self._jobs:
            time.sleep(seconds)
            return []
        ready, _ = self._ray.wait(list(self._jobs), num_returns=1, timeout=seconds)
        more, _ = self._ray.wait(list(self._jobs), num_returns=len(self._jobs), timeout=0)
        return [self._end(task) for task in dict.fromkeys([*ready, *more])]

    def _end(self, task: Any) -> Ended:
        job = self._jobs.pop(task)
        try:
            ended: Ended = self._ray.get(task)
        except self._ray.exceptions.RayTaskError as error:
            return Ended(job, "failed", str(error))
        except self._ray.exceptions.RayError as error:
            return Ended(job, "lost", f"its worker or machine is gone ({type(error).__name__})")
        return ended._replace(job=job)

    def stop(self, seconds: float) -> None:
        """Cancels all tasks: those that run write a checkpoint first."""
        for task in self._jobs:
            self._ray.cancel(task)
        self._ray.wait(list(self._jobs), num_returns=len(self._jobs), timeout=seconds) if self._jobs else None
        for task in self._jobs:
            with suppress(ValueError):
                self._ray.cancel(task, force=True)
        self._jobs = {}

    def close(self) -> None:
        """Leaves the cluster; a Ray of our own ends."""
        for task in self._jobs:
            with suppress(ValueError):
                self._ray.cancel(task, force=True)
        if self._started:
            self._ray.shutdown()


def _import_ray() -> Any:
    try:
        import ray
    except ModuleNotFoundError as missing:
        raise ValueError("The engine ray needs the package ray: pip install 'arml[ray]'") from missing
    return ray


def _train_on_worker(work: Work, job: Job, threads: int) -> Ended:
    torch.set_num_threads(threads)
    keep_freed_memory()
    with stop_on_signals() as stop:  # Ray cancels a task by what Ctrl-C does
        return attempt(work, job, stop)
