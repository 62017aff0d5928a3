"""Low precision: the scale that keeps float16 gradients from vanishing, and the autocast around a closure."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TypeAlias

import torch
from torch.amp import GradScaler

from arml.gradients.backward import TaskLosses
from arml.gradients.graph import uses_float16

LossScale: TypeAlias = float | GradScaler | None
"""A number, or the scaler of the training loop; ``None``: 1."""


def check_loss_scale(loss_scale: LossScale) -> None:
    """Raises unless ``loss_scale`` is a positive number, a scaler or ``None``."""
    if loss_scale is None or isinstance(loss_scale, GradScaler):
        return
    if not isinstance(loss_scale, int | float) or not 0 < loss_scale < float("inf"):
        raise ValueError(
            f"`loss_scale` should be a positive number, such as 2.0**16, or a torch.amp.GradScaler. Got {loss_scale!r}."
        )


def read_scale(loss_scale: LossScale) -> float:
    """The number that losses are multiplied by while gradients are measured."""
    if isinstance(loss_scale, GradScaler):
        return float(loss_scale.get_scale())
    return 1.0 if loss_scale is None else loss_scale


class Precision:
    """Reports, once each, what float16 does to the measured gradients."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def check_scaled(self, loss_scale: LossScale, losses: TaskLosses) -> None:
        """At the first update: whether gradients in float16 have a loss scale."""
        if loss_scale is None and self._is_new("graph") and uses_float16(losses):
            self._known.add("vanished")  # the advice would be the same
            warnings.warn(
                "Gradients are computed in float16, where small numbers become zero, and so do the inner products of "
                "tasks. Pass Reweighter(..., loss_scale=scaler), with the GradScaler of your loop or a number such as "
                "2.0**16; 1.0 keeps them as they are.",
                stacklevel=2,
            )

    def check_vanished(self, names: Sequence[str], losses: TaskLosses) -> None:
        """``names``: tasks with a product of exactly 0 that depend on shared parameters, and ``losses`` theirs."""
        nonzero = [name for name, loss in zip(names, losses, strict=True) if bool(loss) and uses_float16([loss])]
        if nonzero and self._is_new("vanished"):
            warnings.warn(
                f"Inner products with the gradient of {', '.join(map(repr, nonzero))} are exactly zero in float16, "
                "but the loss is not. Pass a larger `loss_scale`, such as 2.0**16, or the GradScaler of your loop.",
                stacklevel=2,
            )

    def report_overflow(self, loss_scale: LossScale) -> None:
        """A scale is too large. A scaler notices that by itself, in the caller's backward pass."""
        if isinstance(loss_scale, int | float) and loss_scale > 1 and self._is_new("overflow"):
            warnings.warn(
                f"Gradients are finite, but not with loss_scale={loss_scale:g}: the weights stay as they were at such "
                "steps. Pass a smaller `loss_scale`, or the GradScaler of your loop, which adapts itself.",
                stacklevel=2,
            )

    def _is_new(self, finding: str) -> bool:
        new = finding not in self._known
        self._known.add(finding)
        return new


class Autocast:
    """Autocast as it was when this object was made."""

    def __init__(self) -> None:
        accelerator = torch.accelerator.current_accelerator()
        kinds = ["cpu"] if accelerator is None else ["cpu", accelerator.type]
        self._settings = [(kind, torch.get_autocast_dtype(kind), torch.is_autocast_enabled(kind)) for kind in kinds]

    @property
    def enabled(self) -> bool:
        """Whether any device computed in low precision."""
        return any(enabled for _, _, enabled in self._settings)

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Inside, autocast is as it was."""
        with ExitStack() as stack:
            for kind, dtype, enabled in self._settings:
                # Its cache would keep casts of parameters that were moved along a direction.
                stack.enter_context(torch.autocast(kind, dtype, enabled, cache_enabled=False))
            yield
