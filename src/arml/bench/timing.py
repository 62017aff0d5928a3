"""Time and memory of training steps."""

import os
import random
import re
import time
import warnings
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from arml.bench.peers import Step

C = TypeVar("C", bound=Hashable)
Count: TypeAlias = Callable[[int, int], None]
"""Told how many of how many turns are over."""
RARELY = 3
"""Ways that grow with K have a turn in every so many rounds."""
LEAST_ROUNDS = 3
TAKEN_OVER = "Inner products of task gradients"
"""How the Reweighter's warning begins that it computes in another way than asked for."""


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
    """Rounds, at most."""
    seconds: float = 240.0
    """Time for all rounds of a kind together: there are fewer rounds where they do not fit, but no fewer than three."""
    threads: int = 1
    device: str = "cpu"
    brief: bool = False
    """Ways that grow with K are left out where they are slow, and their memory is not measured."""

    def clock(self) -> str:
        """Time of this process alone is hardly disturbed by others, but adds up threads and misses accelerators."""
        return "process_time" if self.threads == 1 and self.device == "cpu" else "perf_counter"

    def now(self) -> float:
        """Seconds, once everything asked for has been done."""
        if self.device != "cpu":
            torch.accelerator.synchronize()
        return time.process_time() if self.clock() == "process_time" else time.perf_counter()

    def seconds_of(self, step: Step) -> float:
        """What ``step`` takes."""
        start = self.now()
        step()
        return self.now() - start


def tried(step: Step, plan: Plan) -> tuple[float, str]:
    """The seconds of a step, and what it says in one line if it does not work; nothing if it does."""
    with warnings.catch_warnings():
        # Where another way takes over, with a warning, the time would not be that of what is asked for.
        warnings.filterwarnings("error", message=TAKEN_OVER)
        try:
            return plan.seconds_of(step), ""
        except (RuntimeError, UserWarning) as error:
            if isinstance(error, UserWarning) and not str(error).startswith(TAKEN_OVER):
                raise  # someone else's, who wants warnings to be errors
            return 0.0, one_line(error)


def one_line(error: Exception) -> str:
    """What an engine says; not what is said around it where another one takes over.

    >>> one_line(UserWarning("X does not work here and is not tried again (no derivative). Another way is used"))
    'no derivative'
    """
    words = " ".join(str(error).split())
    inside = re.search(r"not tried again \((.*)\)\. Another way", words)
    return (inside[1] if inside else words)[:300]


def time_all(steps: Mapping[C, Step], due: Sequence[C], plan: Plan, count: Count) -> tuple[Timings[C], dict[C, str]]:
    """Times all cases as their turns come; and says why, where a case works no more and has no further turns."""
    seconds: dict[C, list[float]] = {case: [] for case in steps}
    failed: dict[C, str] = {}
    for done, case in enumerate(due, start=1):
        taken, reason = (0.0, failed[case]) if case in failed else tried(steps[case], plan)
        if reason:
            failed[case] = reason
        else:
            seconds[case].append(taken)
        count(done, len(due))
    return {case: summary(values) for case, values in seconds.items() if values}, failed


def rounds_that_fit(first: Mapping[C, float], rare: Collection[C], plan: Plan) -> int:
    """As many as ``plan`` allows, when a turn of each case takes what the ``first`` one took.

    >>> rounds_that_fit({"fast": 1.0, "slow": 27.0}, {"slow"}, Plan(repeats=15, seconds=100))
    10
    """
    a_round = sum(seconds / (RARELY if case in rare else 1) for case, seconds in first.items())
    return min(plan.repeats, max(LEAST_ROUNDS, int(plan.seconds / a_round)))


def turns(cases: Sequence[C], rounds: int, rare: Collection[C]) -> list[C]:
    """Whose turn it is: all cases in every round, ``rare`` ones in every third.

    Each round has another order, so that whatever else the machine does hits all alike.
    """
    order, due = random.Random(0), []
    for number in range(rounds):
        now = [case for case in cases if number % RARELY == 0 or case not in rare]
        due += order.sample(now, len(now))
    return due


def summary(seconds: Sequence[float]) -> Timing:
    """Median and quartiles.

    >>> summary([1.0, 2.0, 3.0, 4.0, 5.0])
    Timing(median=3.0, low=2.0, high=4.0, n=5)
    """
    low, median, high = np.quantile(seconds, [0.25, 0.5, 0.75]).tolist()
    return Timing(median, low, high, len(seconds))


def peak_bytes(step: Step, device: str = "cpu") -> int:
    """The most memory that tensors take during ``step``, beyond what they took before it.

    On the CPU it is the peak of the running sum of everything the allocator hands out and gets back, in order;
    results that stay alive count, and so do the workspaces of operations.

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
    with quiet(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step()
    # Not `profiler.events()`: there what an operation frees before its end is already set off against what it takes.
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
def quiet() -> Iterator[None]:
    """Inside, remarks that the profiler writes past Python are not shown."""
    errors, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(errors, 2)
        os.close(errors)
        os.close(nowhere)
