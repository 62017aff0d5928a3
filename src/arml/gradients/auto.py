"""Which engine answers, and what happens where one does not work."""

import warnings
from collections.abc import Sequence
from copy import copy

import torch
from torch import Tensor

from arml._distributed import mean_of_numbers, mean_over_processes
from arml.gradients.backward import (
    Engine,
    Gradient,
    Losses,
    direction_gradients,
    dot,
    double_backward,
    is_compiled,
    one_by_one,
    pairwise,
    task_gradient,
)

CLOSURE = " If that grows with the number of tasks, pass a closure: reweighter(closure=...) stays cheap for any number."
"""The remedy where there is no second derivative."""
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
    """The cheapest engine that works here; what fails once is not tried again, and one warning says so.

    Few tasks: :func:`pairwise`. More: :func:`double_backward`, or, where an operation has no second derivative (flash
    attention, compiled graphs), :func:`one_by_one`. Engines made from a closure come first. What fails on one process
    counts as failed on all of them.
    """

    def __init__(self) -> None:
        self._first: Sequence[Engine] = ()
        self._failed: set[str] = set()
        self._passed: set[str] = set()

    def after(self, *first: Engine) -> "Auto":
        """The same, with the same memory, but trying the engines ``first`` before its own."""
        other = copy(self)
        other._first = first
        return other

    def __call__(self, losses: Losses, shared: Sequence[Tensor], directions: Tensor) -> Tensor:
        """A [D, 1 + K], the mean over processes."""
        self._check_repeatable(losses, shared)
        by_graph: list[Engine] = [pairwise] if len(losses) <= 3 else [double_backward, one_by_one]
        *attempts, last = [*self._first, *by_graph]
        for engine in attempts:
            if _name(engine) in self._failed:
                continue
            try:
                self._try_all_tasks(engine, losses, shared)
                return attempt(engine, losses, shared, directions)
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:
                self._give_up(engine, error)
        return attempt(last, losses, shared, directions)

    def _check_repeatable(self, losses: Losses, shared: Sequence[Tensor]) -> None:
        """Once: compiled code may overwrite in a backward pass what the next one needs, and does not always say so."""
        if check_repeatable.__name__ not in self._passed:
            self._passed.add(check_repeatable.__name__)
            if is_compiled(losses):
                check_repeatable(losses, shared)

    def _try_all_tasks(self, engine: Engine, losses: Losses, shared: Sequence[Tensor]) -> None:
        """Once: a direction in which every task counts, so that a task without second derivative is noticed."""
        if engine is double_backward and _name(engine) not in self._passed:
            attempt(engine, losses, shared, torch.ones(1, len(losses)))
            self._passed.add(_name(engine))

    def _give_up(self, engine: Engine, error: RuntimeError) -> None:
        self._failed.add(_name(engine))
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        warnings.warn(EngineFallbackWarning(_name(engine), reason), stacklevel=2)


def check_repeatable(losses: Losses, shared: Sequence[Tensor]) -> None:
    """Raises unless a second backward pass through the graph gives what the first one gave."""
    total = torch.stack(list(losses)).sum()
    try:
        first, second = (task_gradient(total, shared) for _ in range(2))
    except RuntimeError as error:
        if "donated" in str(error):
            raise ValueError(ONE_PASS) from error
        raise
    apart = [a - b for a, b in zip(first, second, strict=True)]
    if dot(apart, apart) > 1e-6 * dot(first, first):
        raise ValueError(ONE_PASS)


def attempt(engine: Engine, losses: Losses, shared: Sequence[Tensor], directions: Tensor) -> Tensor:
    """What ``engine`` says, the mean over processes; raises on all processes if it fails on any.

    A process on which it fails sends what the others wait for all the same.
    """
    sent = False

    def average(rs: Sequence[Gradient]) -> list[list[Tensor]]:
        nonlocal sent
        sent = True
        means = mean_over_processes([part for r in rs for part in r])
        return [means[i : i + len(rs[0])] for i in range(0, len(means), len(rs[0]))]

    failure: RuntimeError | None = None
    products = torch.zeros(directions.shape, device=losses[0].device)
    try:
        products = engine(losses, shared, directions, average).detach()
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        failure = error
        if not sent:
            average(direction_gradients(losses, shared, directions))
    products, failures = mean_of_numbers([products, products.new_tensor(float(failure is not None))])
    if failure is not None:
        raise failure
    if failures > 0:
        raise RuntimeError("it failed on another process")
    return products


def _name(engine: Engine) -> str:
    return getattr(engine, "__name__", type(engine).__name__)
