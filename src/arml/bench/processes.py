"""What an update of the weights costs when several processes train together: measured on real ones."""

import gc
import os
import pickle
import socket
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from typing import Any, NamedTuple, TypeAlias

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import TCPStore  # type: ignore[attr-defined]  # public, but not in its __all__
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.multiprocessing.spawn import ProcessContext, ProcessException, spawn
from torch.nn.parallel import DistributedDataParallel

from arml.bench.contenders import DIFFERENCES, DUAL, FIXED, GRAPH, reweighter_of
from arml.bench.expected_traffic import GRAM, NORMS, ONE_BY_ONE, PAIRWISE, Traffic, check_positive
from arml.bench.peers import RATE
from arml.bench.problems import Kind, Problem
from arml.bench.timing import Timing, summary, turns
from arml.gradients import CentralDifferences, DualNumbers, Engine, double_backward, one_by_one, pairwise
from arml.methods import ARML, GradNorm, Method, Needs, Uniform

GROWING = (ONE_BY_ONE, PAIRWISE, NORMS, GRAM)
"""Ways that take a backward pass for every task: they have a turn in every third round."""
HOST = "127.0.0.1"


class Row(NamedTuple):
    """A training step that updates the weights in one way, on a number of processes."""

    way: str
    processes: int
    gradients: Traffic
    """What DDP sends of gradients, with fixed weights as well. Buffers, which it sends before a pass, do not count."""
    update: Traffic
    """What the Reweighter sends."""
    seconds: Timing
    """As the first process sees it."""
    refused: int
    """Turns in which this way noticed that it would have been wrong; they are not among those of ``seconds``."""
    ratio: float
    """Of the median to that of fixed weights."""


def measured(
    kind: Kind, num_aux: int, batch: int, processes: int, repeats: int, *, timeout: float = 1800.0
) -> list[Row]:
    """Time and traffic of a training step, fixed weights first, on ``processes`` that share out a batch.

    Real processes of one thread each, with DistributedDataParallel unless there is only one. All ways take turns, in
    another order in every round. Ways that never work here are left out, such as ``double_backward`` with flash
    attention. A script that calls this needs the usual ``if __name__ == "__main__":``: every process reads it again.

    Args:
        kind: of network; its functions must be known to other processes by name, which lambdas are not.
        num_aux: K.
        batch: examples in the whole batch; each process has its n-th part, rounded down.
        processes: n.
        repeats: rounds that count; one before them warms up.
        timeout: seconds for everything; after that, all processes are ended.

    Raises:
        RuntimeError: a process failed, with its traceback; or there is no port to talk over.
        TimeoutError: it took longer than ``timeout``.
    """
    check_positive(num_aux=num_aux, processes=processes, repeats=repeats)
    if batch < processes:
        raise ValueError(f"`batch` should be at least the number of processes, {processes}. Got {batch}.")
    _check_known_by_name(kind)
    return _run(_Job(kind, num_aux, batch // processes, processes, repeats, timeout))


@dataclass(frozen=True)
class _Job:
    """What a process is told."""

    kind: Kind
    num_aux: int
    batch: int
    """Examples of one process."""
    processes: int
    repeats: int
    timeout: float


_Answers: TypeAlias = SimpleQueue[list[Row] | str]
"""The rows, from the first process, or why a process failed."""
_Joint: TypeAlias = Callable[[], Tensor]
"""The first half of a training step: a pass, perhaps an update, and the loss to descend."""


class _Step(NamedTuple):
    """One step that was taken; see :class:`Row`."""

    gradients: Traffic
    update: Traffic
    seconds: float


class _Network(nn.Module):
    """Trunk and heads as one module: DDP averages the gradients of losses that come from calling it."""

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        self.problem, self.trunk, self.heads = problem, problem.trunk, problem.heads

    def forward(self) -> tuple[Tensor, dict[str, Tensor]]:
        return self.problem.losses()

    def stacked(self) -> Tensor:
        """All losses, [1 + K]; for the passes of an update, which DDP has nothing to do with."""
        main, aux = self.problem.losses()
        return torch.stack([main, *aux.values()])


class _Gram(Uniform):
    """Asks for the Gram matrix and leaves the weights at 1: the answer is not what is measured here."""

    def needs(self) -> Needs:
        return Needs(gram=True)


def _joints(network: _Network, model: nn.Module) -> dict[str, _Joint]:
    """All ways. ``model`` is ``network``, or DDP around it: losses come from the one, `shared` is of the other."""
    engines: dict[str, Engine] = {
        GRAPH: double_backward,
        DUAL: DualNumbers(network.stacked, network.trunk),
        DIFFERENCES: CentralDifferences(network.stacked),
        ONE_BY_ONE: one_by_one,
        PAIRWISE: pairwise,
    }

    def fixed() -> Tensor:
        main, aux = model()
        return torch.stack([main, *aux.values()]).sum()

    def updated(method: Method[Any], engine: Engine | None = None) -> _Joint:
        reweighter = reweighter_of(network.problem, method, network.trunk, engine)
        return lambda: reweighter(*model())

    by_engine = {way: updated(ARML(lr=RATE), engine) for way, engine in engines.items()}
    return {FIXED: fixed, **by_engine, NORMS: updated(GradNorm(lr=RATE)), GRAM: updated(_Gram())}


def _averaged(network: _Network) -> DistributedDataParallel:
    """DDP around ``network``, with a hook that does what DDP does anyway, but through ``all_reduce``, to be counted."""
    model = DistributedDataParallel(network)
    model.register_comm_hook(None, allreduce_hook)
    return model


def _run(job: _Job) -> list[Row]:
    """Starts the processes and waits for what they say."""
    store = _rendezvous() if job.processes > 1 else None
    answers: _Answers = get_context("spawn").SimpleQueue()
    started = spawn(_process, (job, store.port if store else 0, answers), job.processes, join=False, daemon=True)
    try:
        _wait_for(started, job.timeout)
    except ProcessException as error:
        # What failed first has spoken first: the others may have failed only because it went away.
        reason = str(error) if answers.empty() else answers.get()
        raise RuntimeError(f"Measuring {job.kind.name} on {job.processes} processes failed: {reason}") from None
    rows = answers.get()
    assert not isinstance(rows, str)  # that is what processes say that fail
    return rows


def _process(rank: int, job: _Job, port: int, answers: _Answers) -> None:
    """One of the processes; the first one answers."""
    torch.set_num_threads(1)
    try:
        if job.processes > 1:
            _join_group(rank, job, port)
        rows = _rows(job)
        gc.collect()  # a model in DDP that outlives its process group may abort the process when it ends
        if job.processes > 1:
            dist.destroy_process_group()
    except Exception:
        answers.put(traceback.format_exc())
        raise
    if rank == 0:
        answers.put(rows)


def _join_group(rank: int, job: _Job, port: int) -> None:
    loopback = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
    if loopback:  # otherwise gloo looks the machine's name up, and not every machine knows its own
        os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback[0])
    patience = timedelta(seconds=job.timeout)
    store = TCPStore(HOST, port, job.processes, is_master=False, timeout=patience)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=job.processes, timeout=patience)


def _rows(job: _Job) -> list[Row]:
    problem = Problem(job.kind, job.num_aux, job.batch)
    network = _Network(problem)
    joints = _joints(network, _averaged(network) if job.processes > 1 else network)
    problem.descend(joints[FIXED]())  # DDP puts its messages together anew after its first step
    for joint in joints.values():
        _take(problem, joint)  # warms up
    steps: dict[str, list[_Step | None]] = {way: [] for way in joints}
    for way in turns(list(joints), job.repeats, GROWING):
        steps[way].append(_take(problem, joints[way]))
    taken = {way: [step for step in every if step is not None] for way, every in steps.items()}
    unit = summary([step.seconds for step in taken[FIXED]]).median
    return [_row(way, job.processes, own, len(steps[way]), unit) for way, own in taken.items() if own]


def _row(way: str, processes: int, taken: list[_Step], num_turns: int, unit: float) -> Row:
    seconds, last = summary([step.seconds for step in taken]), taken[-1]
    refused = num_turns - len(taken)
    return Row(way, processes, last.gradients, last.update, seconds, refused, seconds.median / unit)


def _take(problem: Problem, joint: _Joint) -> _Step | None:
    """One step, which all processes begin together; ``None``: this way does not work, or not on these losses.

    Then no process takes the step: an engine that does not work on one says so to all others.
    """
    if dist.is_initialized():
        dist.barrier()
    start = time.perf_counter()
    try:
        with _counted() as update:
            loss = joint()
    except torch.OutOfMemoryError:
        raise
    except RuntimeError:
        return None
    with _counted() as gradients:
        problem.descend(loss)
    seconds = time.perf_counter() - start
    return _Step(Traffic(len(gradients), sum(gradients)), Traffic(len(update), sum(update)), seconds)


@contextmanager
def _counted() -> Iterator[list[int]]:
    """The bytes given to every ``all_reduce`` inside, in order."""
    sent: list[int] = []
    all_reduce = dist.all_reduce

    def counting(tensor: Tensor, op: Any = dist.ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
        sent.append(tensor.nbytes)
        return all_reduce(tensor, op, group, async_op)

    dist.all_reduce = counting
    try:
        yield sent
    finally:
        dist.all_reduce = all_reduce


def _rendezvous() -> TCPStore:
    """Where processes find each other, at a port that the system chooses."""
    try:
        return TCPStore(HOST, 0, is_master=True, wait_for_workers=False)
    except (RuntimeError, OSError) as error:
        raise RuntimeError(
            f"No port can be had on {HOST}, over which processes talk ({error}). "
            "Allow connections inside this machine, or measure with one process."
        ) from error


def _wait_for(started: ProcessContext, timeout: float) -> None:
    """Until all processes have ended. None of them is left, whatever happens."""
    deadline = time.monotonic() + timeout
    try:
        while not started.join(timeout=max(0.0, deadline - time.monotonic()), grace_period=1.0):
            if time.monotonic() >= deadline:
                raise TimeoutError(
                    f"Measuring took longer than {timeout:g} s and was ended. "
                    "Ask for fewer repeats, tasks or examples, or for a longer `timeout`."
                )
    finally:
        for process in started.processes:
            process.kill()
            process.join()


def _check_known_by_name(kind: Kind) -> None:
    try:
        pickle.dumps(kind)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"The kind of network {kind.name!r} cannot be told to other processes ({error}). Its functions should be "
            "those of a module, or functools.partial of them, not lambdas."
        ) from error
