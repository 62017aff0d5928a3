"""Compares an engine's products with the graph, for every task: at the first update, and now and then.

The sum that an engine checks by itself says nothing about tasks that a direction leaves out, as c = e_0 leaves out all
auxiliary ones. So the engine is also asked about random directions w over a few tasks each, with v = sum_i w_i g_i: its
products must give sum_i w_i <g_i, v> = ||v||^2. A task whose derivative the engine gets wrong, such as one behind a
stopped gradient, is wrong along its own gradient most of all, and that is a part of v.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from arml.gradients.backward import (
    HIDDEN,
    Average,
    Engine,
    Gradient,
    TaskLosses,
    dot,
    gradient_sizes,
    lowest_precision,
)

GROUP = 8
"""Tasks in one direction, at most: the noise of many would hide the error of one."""
EXACT = 1e-3
"""The largest relative error of an engine that computes derivatives in float32 or float64."""


@dataclass
class Findings:
    """What is known about engines. It is part of the state, so that a resumed training uses the same engines."""

    updates: int = 0
    """So far; it also seeds the random weights of a check."""
    failed: set[str] = field(default_factory=set)
    checked: dict[str, set[int]] = field(default_factory=dict)
    """Tasks, by their index, whose products of the engine were compared with the graph."""

    def state_dict(self) -> dict[str, Any]:
        """Numbers, names and lists of them."""
        checked = {name: sorted(tasks) for name, tasks in sorted(self.checked.items())}
        return {"updates": self.updates, "failed": sorted(self.failed), "checked": checked}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes over what ``state`` knows, and forgets the rest."""
        self.updates, self.failed = int(state["updates"]), set(state["failed"])
        self.checked = {name: {int(i) for i in tasks} for name, tasks in state["checked"].items()}

    def is_check_due(self, name: str, present: Sequence[bool]) -> bool:
        """Whether this update should check the engine: it is time, or the batch holds a task without any check."""
        return is_due(self.updates) or not _indices(present) <= self.checked.get(name, set())

    def record_check(self, name: str, present: Sequence[bool]) -> None:
        """The engine's products of all tasks in this batch agree with the graph."""
        self.checked.setdefault(name, set()).update(_indices(present))

    def groups(self, name: str, present: Sequence[bool]) -> list[Tensor]:
        """Random groups of tasks to check: all tasks when some have not been checked before, else one group."""
        # The caller's random state stays as it is, and all processes draw the same.
        order = torch.randperm(len(present), generator=torch.Generator().manual_seed(self.updates))
        groups = list(order.tensor_split(-(-len(order) // GROUP)))
        return groups[:1] if _indices(present) <= self.checked.get(name, set()) else groups


def is_due(update: int) -> bool:
    """Whether engines are checked at this update: the first, the tenth, and every 50th."""
    return update in (1, 10) or update % 50 == 0


def audit(engine: Engine, groups: Sequence[Tensor], seed: int) -> Engine:
    """``engine``, but it raises unless its products of the tasks in ``groups`` agree with the graph."""

    def checked(losses: TaskLosses, shared: Sequence[Tensor], directions: Tensor, average: Average) -> Tensor:
        products: list[Tensor] = []
        calls: list[Callable[[], None]] = [
            lambda: products.append(engine(losses, shared, directions, average)),
            *(lambda group=group: _check(engine, losses, shared, group, seed) for group in groups),
        ]
        failures = [failure for failure in map(_catch, calls) if failure is not None]
        if failures:
            raise failures[0]
        return products[0]

    return checked


def _catch(call: Callable[[], None]) -> RuntimeError | None:
    """Calls, and returns the error: a closure may wait for other processes, so all of them make all calls."""
    try:
        call()
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        return error
    return None


def _check(engine: Engine, losses: TaskLosses, shared: Sequence[Tensor], group: Tensor, seed: int) -> None:
    """Raises unless the engine's products along a random direction over ``group`` give ||v||^2."""
    w = _weights(losses, shared, group, seed)
    rs: list[Gradient] = []

    def keep(local: Sequence[Gradient]) -> list[list[Tensor]]:
        # No mean over processes: everyone compares with its own graph.
        rs.extend(local)
        return [list(r) for r in local]

    (row,) = engine(losses, shared, w[None], keep).detach()
    found, expected = (w.to(row) * row).sum(), dot(rs[0], rs[0])
    share, rounding = getattr(engine, "error", _error_of_derivatives)(lowest_precision(losses))
    values = torch.stack(list(losses)).detach()
    bound = share * expected + rounding * (w.to(values) * values).norm() * expected.sqrt()
    # Written so that products that are not numbers fail; gradients that are none are not the engine's fault.
    if expected.isfinite() and not (found - expected).abs() <= bound:
        explain = getattr(engine, "explain", lambda _: HIDDEN)
        raise RuntimeError(
            f"{explain(losses)}: along a sum of tasks losses change by {found:.4g}, their graph says {expected:.4g}"
        )


def _weights(losses: TaskLosses, shared: Sequence[Tensor], group: Tensor, seed: int) -> Tensor:
    """Random w [1 + K] over the tasks of ``group``; tasks with small gradients count as much as the others."""
    chosen = group.tolist()
    sizes = gradient_sizes([losses[i] for i in chosen], shared).cpu().double()
    sizes = torch.where(sizes > 0, sizes, sizes.max().clamp(min=torch.finfo(torch.float32).tiny))
    # Not just signs: tasks with the same gradient would cancel.
    drawn = torch.rand(len(chosen), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    weights = torch.where(drawn < 0.5, drawn - 1, drawn) / sizes
    # The largest becomes 1, so that w times the losses stays in the range of half precision.
    return torch.zeros(len(losses), dtype=torch.float64).index_copy(0, group, weights / weights.abs().max())


def _error_of_derivatives(precision: float) -> tuple[float, float]:
    """The error to allow for, as a share of ||v||^2, and of the loss times ||v||, which rounding leaves."""
    return max(EXACT, precision), precision


def _indices(present: Sequence[bool]) -> set[int]:
    return {i for i, here in enumerate(present) if here}
