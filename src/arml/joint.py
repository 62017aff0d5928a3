"""The sum that is trained on."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from arml.losses import fill_missing, silence

FEW = 6
"""Up to this many losses are added one by one; from then on stacking costs less, forward and backward."""


def joint_loss(
    tasks: Sequence[str],
    losses: Sequence[Tensor | None],
    factors: Sequence[float],
    *,
    faded_out: bool,
    train_on_main: bool,
) -> Tensor:
    """The sum of the losses [1 + K] that a batch holds, each times its factor."""
    main = losses[0]
    if faded_out:
        losses, factors = silence_aux(losses), [factors[0], 1.0]
    if not train_on_main:
        losses, factors = losses[1:], factors[1:]
    used = [(loss, factor) for loss, factor in zip(losses, factors, strict=True) if loss is not None]
    if used:
        return weighted_sum([loss for loss, _ in used], [factor for _, factor in used])
    if main is not None and not any(factors):
        return silence(main)  # every task is off, so a loop need not compute any of them
    raise ValueError(
        "With train_on_main=False there is nothing to train on in a batch without auxiliary losses. "
        f"Pass at least one of {', '.join(tasks)}."
    )


def weighted_sum(losses: Sequence[Tensor], factors: Sequence[float]) -> Tensor:
    """sum_i factors_i losses_i, in at least float32. A loss that is not finite is left out where its factor is 0.

    >>> weighted_sum([torch.tensor(2.0), torch.tensor(3.0), torch.tensor(float("nan"))], [1.0, 0.5, 0.0])
    tensor(3.5000)
    """
    if 0.0 in factors:
        pairs = zip(losses, factors, strict=True)
        losses = [loss if f or _is_known_finite(loss) else silence(loss) for loss, f in pairs]
    if not 1 < len(losses) <= FEW or not _are_alike(losses):
        chosen = torch.stack(fill_missing(losses))
        weights = torch.tensor(factors, dtype=torch.float64).to(chosen.dtype)
        return (weights.to(chosen.device, non_blocking=True) * chosen).sum()
    total = losses[0] if factors[0] == 1 else factors[0] * losses[0]
    for loss, factor in zip(losses[1:], factors[1:], strict=True):
        total = torch.add(total, loss, alpha=factor)  # one operation and one node, where f * loss + total has two
    return total


def _is_known_finite(loss: Tensor) -> bool:
    """Whether ``loss`` is finite. On an accelerator nobody looks: reading a number would wait for the whole pass."""
    return loss.device.type == "cpu" and math.isfinite(loss.item())


def silence_aux(losses: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The main loss, and one zero in place of all auxiliary losses: no number is read, and no gradient computed."""
    main, *aux = losses
    given = [loss for loss in aux if loss is not None]
    return [main, silence(*given) if given else None]


def _are_alike(losses: Sequence[Tensor]) -> bool:
    """Whether the losses can be added as they are: in one precision of at least float32, on one device."""
    dtype, device = losses[0].dtype, losses[0].device
    return dtype in (torch.float32, torch.float64) and all(
        loss.dtype is dtype and loss.device == device for loss in losses[1:]
    )
