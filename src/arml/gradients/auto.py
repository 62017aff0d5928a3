"""Chooses the engine, and replaces one that does not work."""

import math
import warnings
from collections.abc import Sequence
from copy import copy
from typing import Any

import torch
from torch import Tensor

from arml._distributed import ProcessError, mean_of_numbers, mean_over_processes, num_processes, raise_together
from arml.gradients.audit import Findings, audit
from arml.gradients.backward import (
    Engine,
    Gradient,
    TaskLosses,
    adapt_directions,
    direction_gradients,
    double_backward,
    one_by_one,
    pairwise,
)

CLOSURE = " If that grows with the number of tasks, pass a closure: reweighter(closure=...) stays cheap for any number."
"""Advice for losses without a second derivative."""


class EngineFallbackWarning(UserWarning):
    """An engine does not work here, and another one computes the inner products from now on.

    Args:
        engine: the name of the engine that failed.
        reason: why it failed.
    """

    def __init__(self, engine: str, reason: str) -> None:
        super().__init__(engine, reason)  # what pickling and copying call the class with
        self.engine, self.reason = engine, reason

    def __str__(self) -> str:
        """The text that users see."""
        return (
            f"Inner products of task gradients: {self.engine} does not work here and is not tried again "
            f"({self.reason}). Another engine is used: same numbers, more time."
            f"{CLOSURE if self.engine == double_backward.__name__ else ''}"
        )


class Auto:
    """The cheapest engine that works. An engine that fails once is not tried again, and one warning reports it.

    Up to two auxiliary tasks: :func:`pairwise`. More: :func:`double_backward`, or, where an operation has no second
    derivative (flash attention, compiled graphs), :func:`one_by_one`. Engines made from a closure come first. An engine
    that fails on one process counts as failed on all of them.

    At an engine's first update, and now and then, its products of all tasks are compared with the graph.
    """

    def __init__(self) -> None:
        self._first: Sequence[Engine] = ()
        self._present: list[bool] | None = None
        self._findings = Findings()

    def prefer(self, *first: Engine, present: Sequence[bool] | None = None) -> "Auto":
        """A copy that tries the engines ``first`` before its own.

        ``present`` says which tasks any process holds; without it, processes ask each other.
        """
        # A shallow copy shares the findings: an engine that fails for one call must stay out of all later ones.
        other = copy(self)
        other._first, other._present = first, None if present is None else list(present)
        return other

    def __call__(self, losses: TaskLosses, shared: Sequence[Tensor], directions: Tensor) -> Tensor:
        """A [D, 1 + K], the mean over processes."""
        self._findings.updates += 1
        # Few separate backward passes cost less than a second graph (python benchmarks/step.py --only "few tasks").
        by_graph: list[Engine] = [pairwise] if len(losses) <= 3 else [double_backward, one_by_one]
        *attempts, last = [*self._first, *by_graph]
        for engine in attempts:
            if _name(engine) in self._findings.failed:
                continue
            try:
                return self._attempt(engine, losses, shared, directions)
            except torch.OutOfMemoryError:
                # A RuntimeError as well, but it says nothing about what the engine can do.
                raise
            except RuntimeError as error:
                self._give_up(engine, error)
        # The last engine needs first derivatives only. Where even these fail, training fails: the caller must know.
        return attempt(last, losses, shared, directions, is_last=True)

    def _attempt(self, engine: Engine, losses: TaskLosses, shared: Sequence[Tensor], directions: Tensor) -> Tensor:
        """The answer of ``engine``; where a check is due, it must agree with the graph for every task."""
        name, present, findings = _name(engine), self._tasks_anywhere(losses), self._findings
        if not findings.is_check_due(name, present):
            return attempt(engine, losses, shared, directions)
        groups = findings.groups(name, present)
        products = attempt(audit(engine, groups, findings.updates), losses, shared, directions)
        # Where a gradient is not finite, nothing could be compared: the next update tries again.
        if bool(products.isfinite().all()):
            findings.record_check(name, present)
        return products

    def _tasks_anywhere(self, losses: TaskLosses) -> list[bool]:
        """Which tasks the batch holds on any process: all processes must check at the same updates."""
        if self._present is not None:
            return self._present
        here = torch.tensor([loss.requires_grad for loss in losses], device=losses[0].device)
        return [bool(share > 0) for share in mean_of_numbers([here.float()])[0]]

    def state_dict(self) -> dict[str, Any]:
        """What was found out about engines: numbers, names and lists of them."""
        return self._findings.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues with what was known when ``state`` was made."""
        self._findings.load_state_dict(state)

    def _give_up(self, engine: Engine, error: RuntimeError) -> None:
        self._findings.failed.add(_name(engine))
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        warnings.warn(EngineFallbackWarning(_name(engine), reason), stacklevel=2)


def attempt(
    engine: Engine, losses: TaskLosses, shared: Sequence[Tensor], directions: Tensor, *, is_last: bool = False
) -> Tensor:
    """The answer of ``engine``, the mean over processes; raises on all processes if it fails on any.

    A process on which it fails still sends what the others wait for. They raise ``RuntimeError``, so that all turn to
    the next engine; or, if this is the last one or none would help, ``ProcessError`` with the reason.
    """
    sent = False

    def average(rs: Sequence[Gradient]) -> list[list[Tensor]]:
        nonlocal sent
        sent = True
        # All directions travel in one message.
        means = mean_over_processes([part for r in rs for part in r])
        return [means[i : i + len(rs[0])] for i in range(0, len(means), len(rs[0]))]

    failure: Exception | None = None
    products = torch.zeros(directions.shape, device=losses[0].device)
    try:
        products = adapt_directions(engine)(losses, shared, directions, average).detach()
    except ProcessError:
        raise
    except Exception as error:  # noqa: BLE001 -- raised below, once the other processes know
        failure = error
        # Every all-reduce needs every process: without this one the others would wait until they time out.
        if not sent and num_processes() > 1:
            average(_sendable_gradients(losses, shared, directions))
    # All processes must drop the engine together, or their next messages would not match. The news travels with the
    # products, so it costs no message of its own.
    is_final = failure is not None and (is_last or not _can_be_replaced(failure))
    news = math.nan if is_final else float(failure is not None)
    products, failures = mean_of_numbers([products, products.new_tensor(news)])
    if num_processes() > 1 and bool(failures.isnan()):
        raise_together(failure if is_final else None)
    if failure is not None:
        raise failure
    if failures > 0:
        raise RuntimeError("it failed on another process")
    return products


def _can_be_replaced(error: Exception) -> bool:
    """Whether another engine may do better: not if memory runs out or the caller's own code fails."""
    return isinstance(error, RuntimeError) and not isinstance(error, torch.OutOfMemoryError)


def _sendable_gradients(losses: TaskLosses, shared: Sequence[Tensor], directions: Tensor) -> list[Gradient]:
    """The gradients that the other processes wait for, or zeros of the same shape where even these fail."""
    try:
        return direction_gradients(losses, shared, directions)
    except Exception:  # noqa: BLE001 -- the first failure is the one to report
        return direction_gradients([loss.detach() for loss in losses], shared, directions)


def _name(engine: Engine) -> str:
    return getattr(engine, "__name__", type(engine).__name__)
