"""Time and memory of training steps."""

import os
import random
import time
import warnings
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from arml.gradients import EngineFallbackWarning

C = TypeVar("C", bound=Hashable)
Step: TypeAlias = Callable[[], None]
"""One training step."""
Tick: TypeAlias = Callable[[int, int], None]
"""Called after every turn, with the number of turns taken and the number of all turns."""
RARELY = 3
"""Contenders that grow with K have a turn in every third round."""
LEAST_ROUNDS = 3
MOST_CHARACTERS = 300
"""Length at which the reason of a failure is cut off."""


class Timing(NamedTuple):
    """Seconds of a step: the median of ``n`` turns and their quartiles."""

    median: float
    low: float
    high: float
    n: int


Timings: TypeAlias = dict[C, Timing]


@dataclass(frozen=True)
class Plan:
    """How long to measure, and where."""

    repeats: int = 15
    """The largest number of rounds."""
    seconds: float = 240.0
    """Time for all rounds of one kind of network. Rounds that do not fit are left out, down to three."""
    threads: int = 1
    device: str = "cpu"
    brief: bool = False
    """Leave out contenders that grow with K where they are slow, and do not measure their memory."""

    def clock_name(self) -> str:
        """The function of ``time`` that is read.

        The time of this process is hardly disturbed by other processes, but it adds up threads and misses accelerators.
        """
        return "process_time" if self.threads == 1 and self.device == "cpu" else "perf_counter"

    def read_clock(self) -> float:
        """Seconds, after all work on the device has finished."""
        if self.device != "cpu":
            torch.accelerator.synchronize()
        return time.process_time() if self.clock_name() == "process_time" else time.perf_counter()

    def seconds_of(self, step: Step) -> float:
        """The time that ``step`` takes."""
        start = self.read_clock()
        step()
        return self.read_clock() - start


def try_step(step: Step, plan: Plan) -> tuple[float, str]:
    """The seconds of a step, and why it failed in one line; an empty line if it did not."""
    with warnings.catch_warnings():
        # Where another engine takes over, the time would not be that of the engine in the table.
        warnings.simplefilter("error", EngineFallbackWarning)
        try:
            return plan.seconds_of(step), ""
        except EngineFallbackWarning as fallback:
            return 0.0, _one_line(fallback.reason)
        except RuntimeError as error:
            return 0.0, _one_line(str(error))


def _one_line(reason: str) -> str:
    return " ".join(reason.split())[:MOST_CHARACTERS]


def time_all(steps: Mapping[C, Step], due: Sequence[C], plan: Plan, tick: Tick) -> tuple[Timings[C], dict[C, str]]:
    """Time every case when its turn comes.

    Also returns why cases failed: a case that has failed once has no further turns.
    """
    seconds: dict[C, list[float]] = {case: [] for case in steps}
    failed: dict[C, str] = {}
    for done, case in enumerate(due, start=1):
        taken, reason = (0.0, failed[case]) if case in failed else try_step(steps[case], plan)
        if reason:
            failed[case] = reason
        else:
            seconds[case].append(taken)
        tick(done, len(due))
    return {case: quartiles(values) for case, values in seconds.items() if values}, failed


def rounds_that_fit(first: Mapping[C, float], rare: Collection[C], plan: Plan) -> int:
    """The number of rounds that ``plan`` has time for, if every turn of a case takes as long as its ``first`` one.

    >>> rounds_that_fit({"fast": 1.0, "slow": 27.0}, {"slow"}, Plan(repeats=15, seconds=100))
    10
    """
    a_round = sum(seconds / (RARELY if case in rare else 1) for case, seconds in first.items())
    return min(plan.repeats, max(LEAST_ROUNDS, int(plan.seconds / a_round)))


def turns(cases: Sequence[C], rounds: int, rare: Collection[C]) -> list[C]:
    """Whose turn it is: all cases in every round, ``rare`` ones in every third.

    Each round has another order, so that whatever else the machine does affects all cases alike.
    """
    order, due = random.Random(0), []
    for number in range(rounds):
        now = [case for case in cases if number % RARELY == 0 or case not in rare]
        due += order.sample(now, len(now))
    return due


def quartiles(seconds: Sequence[float]) -> Timing:
    """Median and quartiles.

    >>> quartiles([1.0, 2.0, 3.0, 4.0, 5.0])
    Timing(median=3.0, low=2.0, high=4.0, n=5)
    """
    low, median, high = np.quantile(seconds, [0.25, 0.5, 0.75]).tolist()
    return Timing(median, low, high, len(seconds))


def peak_bytes(step: Step, device: str = "cpu") -> int:
    """The most memory that tensors take during ``step``, beyond what they took before it.

    On the CPU it is the peak of the running sum of everything the allocator hands out and gets back, in order.
    Results that stay alive count, and so do the workspaces of operations.

    >>> import torch
    >>> def two_at_once_then_one():
    ...     a, b = torch.empty(1000), torch.empty(1000)
    ...     del a, b
    ...     torch.empty(1500)
    >>> peak_bytes(two_at_once_then_one)
    8000
    """
    if device != "cpu":
        return _peak_on_cuda(step, device)
    with silence_profiler(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step()
    # Not `profiler.events()`: it reports one number per operation, in which what the operation frees before it ends
    # already cancels what it takes.
    events = profiler.profiler.kineto_results.events()
    changes = [event.nbytes() for event in events if event.name() == "[memory]"]
    return int(max(np.cumsum([0, *changes])))


def _peak_on_cuda(step: Step, device: str) -> int:
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    step()
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) - before


@contextmanager
def silence_profiler() -> Iterator[None]:
    """Hide what the profiler writes to standard error: it does so from C++, past ``sys.stderr``."""
    errors, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(errors, 2)
        os.close(errors)
        os.close(nowhere)
