"""Runs that diverge: a step with a loss that is not finite ends the run or is left out, and the record says so."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Protocol, TypeAlias

import torch
from torch import Tensor, nn

OnNan: TypeAlias = Literal["stop", "skip"]
MOST_SKIPPED = 20
"""Steps in a row that may be left out. After one more the run counts as diverged, since it no longer learns."""


class DivergedError(ValueError):
    """The run has left the finite numbers. The text says at which step, by which task, and what to do."""


class Progress(Protocol):
    """What has to survive in a checkpoint."""

    skipped: int
    """Steps left out in a row, up to the present one."""


class Guard:
    """Looks at every step before the optimiser takes it, and at the network before it is evaluated."""

    def __init__(
        self, on_nan: OnNan, progress: Progress, write: Callable[[dict[str, Any]], None], *, every: int = 1
    ) -> None:
        """``write`` adds a line to the record. With ``stop``, only one of ``every`` steps is looked at."""
        self._skip, self._progress, self._write = on_nan == "skip", progress, write
        self._every = 1 if self._skip else every

    def admit(self, step: int, losses: Mapping[str, Tensor], joint: Tensor, parameters: Iterable[Tensor]) -> bool:
        """Whether the optimiser may take ``step``: never if the joint loss is not finite.

        With ``skip``, gradients are checked, too; otherwise the next loss shows that they were not finite.

        Raises:
            DivergedError: If this is not allowed, or not so many times in a row.
        """
        if step % self._every:
            return True
        if _is_finite([joint]) and (not self._skip or _is_finite(p.grad for p in parameters if p.grad is not None)):
            self._progress.skipped = 0
            return True
        tasks = [name for name, loss in losses.items() if not _is_finite([loss])]
        if not self._skip:
            self._end(step, tasks, f"the {_name(tasks)} is not a finite number")
        self._progress.skipped += 1
        if self._progress.skipped > MOST_SKIPPED:
            self._end(step, tasks, f"the {_name(tasks)} is not finite, for {MOST_SKIPPED + 1} steps in a row")
        self._write({"step": step, "skipped": tasks})
        return False

    def check_network(self, step: int, network: nn.Module) -> None:
        """Raises a :class:`DivergedError` if a parameter or a statistic of the network is not finite."""
        bad = [name for name, value in network.state_dict().items() if not _is_finite([value])]
        if bad:
            self._end(step, [], f"{bad[0]} in the network is not finite, and {len(bad) - 1} more tensors")

    def check_outcome(self, outcome: Mapping[str, Any]) -> None:
        """Raises a :class:`DivergedError` if the result holds a number that is not finite."""
        numbers = {**outcome, **outcome.get("weights", {})}
        bad = [name for name, value in numbers.items() if isinstance(value, float) and not math.isfinite(value)]
        if bad:
            self._end(outcome["step"], [], f"{bad[0]} of its result is {numbers[bad[0]]}")

    def _end(self, step: int, tasks: list[str], what: str) -> None:
        self._write({"step": step, "diverged": {"tasks": tasks, "reason": what}})
        skip = "" if self._skip else ", or --on-nan skip to leave out such steps"
        raise DivergedError(
            f"The run diverged at step {step}: {what}. Tables leave it out and count it. "
            f"Try a smaller --lr or --aux-scale{skip}."
        )


def _name(tasks: list[str]) -> str:
    more = f" and {len(tasks) - 3} more" if len(tasks) > 3 else ""
    return f"loss of {', '.join(tasks[:3])}{more}" if tasks else "gradient"


def _is_finite(tensors: Iterable[Tensor]) -> bool:
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors)
