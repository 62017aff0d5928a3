"""The cost of an update of the weights when several processes train together, measured on real processes."""

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

from arml.bench.contenders import DIFFERENCES, DUAL, FIXED, GRAPH, every_step_reweighter
from arml.bench.expected_traffic import GRAM, NORMS, ONE_BY_ONE, PAIRWISE, Traffic, check_positive
from arml.bench.peers import RATE
from arml.bench.problems import Kind, Problem
from arml.bench.result import ProcessCost
from arml.bench.timing import quartiles, turns
from arml.gradients import CentralDifferences, DualNumbers, Engine, double_backward, one_by_one, pairwise
from arml.methods import ARML, GradNorm, Method, Needs, Uniform

GROWING = (ONE_BY_ONE, PAIRWISE, NORMS, GRAM)
"""Engines that need one backward pass per task: they have a turn in every third round."""
HOST = "127.0.0.1"


def process_costs(
    kind: Kind, num_aux: int, batch: int, processes: int, repeats: int, *, timeout: float = 1800.0
) -> list[ProcessCost]:
    """Time and traffic of a training step, fixed weights first, on ``processes`` that share a batch.

    The processes are real, with one thread each, and use DistributedDataParallel if there are several. All engines
    take turns, in another order in every round. Engines that never work here are left out, such as
    ``double_backward`` with flash attention. A script that calls this function needs the usual
    ``if __name__ == "__main__":``, since every process imports the script again.

    Args:
        kind: the kind of network. Other processes must be able to import its functions by name: no lambdas.
        num_aux: K.
        batch: the number of examples in the whole batch; each process has its n-th part, rounded down.
        processes: n.
        repeats: rounds that count; one round before them warms up.
        timeout: seconds for everything; after that, all processes are killed.

    Raises:
        RuntimeError: a process failed (the message has its traceback), or there is no free port to talk over.
        TimeoutError: it took longer than ``timeout``.
    """
    check_positive(num_aux=num_aux, processes=processes, repeats=repeats)
    if batch < processes:
        raise ValueError(f"`batch` should be at least the number of processes, {processes}. Got {batch}.")
    _check_picklable(kind)
    return _run(_Job(kind, num_aux, batch // processes, processes, repeats, timeout))


@dataclass(frozen=True)
class _Job:
    """The arguments of a process."""

    kind: Kind
    num_aux: int
    batch: int
    """Examples per process."""
    processes: int
    repeats: int
    timeout: float


_Answers: TypeAlias = SimpleQueue[list[ProcessCost] | str]
"""The costs, from the first process, or why a process failed."""
_JointLoss: TypeAlias = Callable[[], Tensor]
"""The first half of a training step: a forward pass, perhaps an update, and the loss to descend."""


class _Turn(NamedTuple):
    """What DDP and the update sent in one step, and the time of the step."""

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

    def stack_losses(self) -> Tensor:
        """All losses, [1 + K], for the passes of an update, in which DDP takes no part."""
        main, aux = self.problem.losses()
        return torch.stack([main, *aux.values()])


class _Gram(Uniform):
    """Asks for the Gram matrix and leaves the weights at 1: only the cost of the matrix matters here."""

    def needs(self) -> Needs:
        return Needs(gram=True)


def _joint_losses(network: _Network, model: nn.Module) -> dict[str, _JointLoss]:
    """One joint loss per engine. ``model``, which gives the losses, is ``network`` or DDP around it."""
    engines: dict[str, Engine] = {
        GRAPH: double_backward,
        DUAL: DualNumbers(network.stack_losses, network.trunk),
        DIFFERENCES: CentralDifferences(network.stack_losses),
        ONE_BY_ONE: one_by_one,
        PAIRWISE: pairwise,
    }

    def equal_weights() -> Tensor:
        main, aux = model()
        return torch.stack([main, *aux.values()]).sum()

    def learned_weights(method: Method[Any], engine: Engine | None = None) -> _JointLoss:
        reweighter = every_step_reweighter(network.problem, method, network.trunk, engine)
        return lambda: reweighter(*model())

    by_engine = {name: learned_weights(ARML(lr=RATE), engine) for name, engine in engines.items()}
    others = {NORMS: learned_weights(GradNorm(lr=RATE)), GRAM: learned_weights(_Gram())}
    return {FIXED: equal_weights, **by_engine, **others}


def _wrap_in_ddp(network: _Network) -> DistributedDataParallel:
    """DDP around ``network``. Its hook averages as DDP does by default, but calls ``all_reduce``, which is counted."""
    model = DistributedDataParallel(network)
    model.register_comm_hook(None, allreduce_hook)
    return model


def _run(job: _Job) -> list[ProcessCost]:
    """Start the processes and wait for the answer of the first."""
    store = _rendezvous() if job.processes > 1 else None
    answers: _Answers = get_context("spawn").SimpleQueue()
    started = spawn(_process, (job, store.port if store else 0, answers), job.processes, join=False, daemon=True)
    try:
        _wait_for(started, job.timeout)
    except ProcessException as error:
        # The first answer is from the process that failed first: others may have failed only because it was gone.
        reason = str(error) if answers.empty() else answers.get()
        raise RuntimeError(f"Measuring {job.kind.name} on {job.processes} processes failed: {reason}") from None
    costs = answers.get()
    assert not isinstance(costs, str)  # only processes that fail answer with a string
    return costs


def _process(rank: int, job: _Job, port: int, answers: _Answers) -> None:
    """Run one of the processes; the first one answers."""
    torch.set_num_threads(1)
    try:
        if job.processes > 1:
            _join_group(rank, job, port)
        costs = _measure(job)
        gc.collect()  # a model in DDP that outlives its process group may abort the process when it ends
        if job.processes > 1:
            dist.destroy_process_group()
    except Exception:
        answers.put(traceback.format_exc())
        raise
    if rank == 0:
        answers.put(costs)


def _join_group(rank: int, job: _Job, port: int) -> None:
    loopback = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
    if loopback:  # otherwise gloo looks up the machine's host name, which not every machine can resolve
        os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback[0])
    patience = timedelta(seconds=job.timeout)
    store = TCPStore(HOST, port, job.processes, is_master=False, timeout=patience)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=job.processes, timeout=patience)


def _measure(job: _Job) -> list[ProcessCost]:
    problem = Problem(job.kind, job.num_aux, job.batch)
    network = _Network(problem)
    losses = _joint_losses(network, _wrap_in_ddp(network) if job.processes > 1 else network)
    problem.descend(losses[FIXED]())  # after its first step, DDP regroups its messages
    for joint_loss in losses.values():
        _take_turn(problem, joint_loss)  # warm-up
    turns_of: dict[str, list[_Turn | None]] = {name: [] for name in losses}
    for name in turns(list(losses), job.repeats, GROWING):
        turns_of[name].append(_take_turn(problem, losses[name]))
    taken = {name: [turn for turn in every if turn is not None] for name, every in turns_of.items()}
    fixed = quartiles([turn.seconds for turn in taken[FIXED]]).median
    return [_cost(job, name, own, len(turns_of[name]) - len(own), fixed) for name, own in taken.items() if own]


def _cost(job: _Job, name: str, taken: list[_Turn], refused: int, fixed: float) -> ProcessCost:
    timing, last = quartiles([turn.seconds for turn in taken]), taken[-1]
    sent = (*last.gradients, *last.update)
    ms, low, high = (1000 * seconds for seconds in timing[:3])
    ratio = timing.median / fixed
    return ProcessCost(job.kind.name, job.num_aux, name, job.processes, *sent, ms, low, high, timing.n, refused, ratio)


def _take_turn(problem: Problem, joint_loss: _JointLoss) -> _Turn | None:
    """One step, which all processes begin together; ``None`` if the engine does not work, or not on these losses.

    Then no process takes the step: an engine that fails on one process tells all others.
    """
    if dist.is_initialized():
        dist.barrier()
    start = time.perf_counter()
    try:
        with _count_messages() as update:
            loss = joint_loss()
    except torch.OutOfMemoryError:
        raise
    except RuntimeError:
        return None
    with _count_messages() as gradients:
        problem.descend(loss)
    seconds = time.perf_counter() - start
    return _Turn(Traffic(len(gradients), sum(gradients)), Traffic(len(update), sum(update)), seconds)


@contextmanager
def _count_messages() -> Iterator[list[int]]:
    """List the bytes passed to every ``all_reduce`` inside, in order."""
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
    """The store through which processes find each other, at a port that the system chooses."""
    try:
        return TCPStore(HOST, 0, is_master=True, wait_for_workers=False)
    except (RuntimeError, OSError) as error:
        raise RuntimeError(
            f"No port can be had on {HOST}, over which processes talk ({error}). "
            "Allow connections inside this machine, or measure with one process."
        ) from error


def _wait_for(started: ProcessContext, timeout: float) -> None:
    """Wait until all processes have ended. None of them survives this function, whatever happens."""
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


def _check_picklable(kind: Kind) -> None:
    try:
        pickle.dumps(kind)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"The kind of network {kind.name!r} cannot be sent to other processes ({error}). Its functions should be "
            "those of a module, or functools.partial of them, not lambdas."
        ) from error
