"""Chooses the engine, and replaces one that does not work."""

import math
import warnings
from collections.abc import Sequence
from copy import copy

import torch
from torch import Tensor

from arml._distributed import ProcessError, mean_of_numbers, mean_over_processes, num_processes, raise_together
from arml.gradients.backward import (
    Engine,
    Gradient,
    TaskLosses,
    direction_gradients,
    dot,
    double_backward,
    is_compiled,
    one_by_one,
    pairwise,
    task_gradient,
)

CLOSURE = " If that grows with the number of tasks, pass a closure: reweighter(closure=...) stays cheap for any number."
"""Advice for losses without a second derivative."""
ONE_PASS = (
    "The compiled network allows one backward pass only, and an update of the weights needs more. Set "
    "torch._functorch.config.donated_buffer = False before the network is first called, and let the environment "
    "variable TORCHINDUCTOR_CACHE_DIR name an empty folder: code that was compiled earlier is used again otherwise."
)


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
    """

    def __init__(self) -> None:
        self._first: Sequence[Engine] = ()
        self._failed: set[str] = set()
        self._passed: set[str] = set()

    def prefer(self, *first: Engine) -> "Auto":
        """A copy that tries the engines ``first`` before its own."""
        # A shallow copy shares the sets: an engine that fails for one call must stay out of all later ones.
        other = copy(self)
        other._first = first
        return other

    def __call__(self, losses: TaskLosses, shared: Sequence[Tensor], directions: Tensor) -> Tensor:
        """A [D, 1 + K], the mean over processes."""
        self._check_repeatable(losses, shared)
        # Separate backward passes are cheaper than a second graph, as long as they are few.
        by_graph: list[Engine] = [pairwise] if len(losses) <= 3 else [double_backward, one_by_one]
        *attempts, last = [*self._first, *by_graph]
        for engine in attempts:
            if _name(engine) in self._failed:
                continue
            try:
                self._try_all_tasks(engine, losses, shared)
                return attempt(engine, losses, shared, directions)
            except torch.OutOfMemoryError:
                # A RuntimeError as well, but it says nothing about what the engine can do.
                raise
            except RuntimeError as error:
                self._give_up(engine, error)
        # The last engine needs first derivatives only. Where even these fail, training fails: the caller must know.
        return attempt(last, losses, shared, directions, is_last=True)

    def _check_repeatable(self, losses: TaskLosses, shared: Sequence[Tensor]) -> None:
        """Once: a backward pass of compiled code may overwrite what the next one needs, without an error."""
        if check_repeatable.__name__ not in self._passed:
            self._passed.add(check_repeatable.__name__)
            # The check costs two backward passes, and plain graphs do not need it.
            if is_compiled(losses):
                check_repeatable(losses, shared)

    def _try_all_tasks(self, engine: Engine, losses: TaskLosses, shared: Sequence[Tensor]) -> None:
        """Once: a direction with every task in it, so that a task without second derivative is noticed."""
        # The sum that an engine checks leaves out tasks with c_i = 0, as all auxiliary tasks in c = e_0 have.
        if engine is double_backward and _name(engine) not in self._passed:
            attempt(engine, losses, shared, torch.ones(1, len(losses)))
            self._passed.add(_name(engine))

    def _give_up(self, engine: Engine, error: RuntimeError) -> None:
        self._failed.add(_name(engine))
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        warnings.warn(EngineFallbackWarning(_name(engine), reason), stacklevel=2)


def check_repeatable(losses: TaskLosses, shared: Sequence[Tensor]) -> None:
    """Raises unless a second backward pass through the graph gives the same as the first."""
    total = torch.stack(list(losses)).sum()
    try:
        first, second = (task_gradient(total, shared) for _ in range(2))
    except RuntimeError as error:
        # torch refuses a second pass only where it knows; code from its cache on disk may give wrong numbers instead.
        if "donated" in str(error):
            raise ValueError(ONE_PASS) from error
        raise
    apart = [a - b for a, b in zip(first, second, strict=True)]
    if dot(apart, apart) > 1e-6 * dot(first, first):
        raise ValueError(ONE_PASS)


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
        products = engine(losses, shared, directions, average).detach()
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
