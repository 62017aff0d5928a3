"""Checks the losses a user passes, and puts them into one order."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from arml._distributed import mean_of_numbers, num_processes, raise_together
from arml.gradients.forward import RandomState

Aux: TypeAlias = Mapping[str, Tensor]
"""Auxiliary losses by task name; a task may be missing."""
Closure: TypeAlias = Callable[[], tuple[Tensor | None, Aux]]
"""Recomputes the main loss and the auxiliary losses."""


class Batch(NamedTuple):
    """What one call gets. Lists hold the main task, then one entry per auxiliary task; ``None``: missing."""

    losses: list[Tensor | None]
    """The losses that are trained on."""
    measured: list[Tensor | None]
    """The losses that are measured: the first is the held-out loss, if there is one."""
    closure: Closure | None
    """Recomputes the losses."""
    start: RandomState | None
    """The random state before the closure computed them."""
    num_examples: int | None
    """The examples in this process's part of the batch."""
    counts: Mapping[str, float]
    """What the losses of some tasks count in the sum, in place of their weights."""

    @property
    def steering_name(self) -> str:
        """The name of the loss that auxiliary tasks are compared with."""
        return "main" if self.measured is self.losses else "steer"


def check_names(tasks: Sequence[str]) -> tuple[str, ...]:
    """``tasks`` as a tuple; raises unless they are different names."""
    names = () if isinstance(tasks, str) else tuple(tasks)
    if not names or len(set(names)) < len(names) or not all(isinstance(name, str) for name in names) or "main" in names:
        raise ValueError(
            f"`tasks` should be a list of different names of auxiliary tasks, none of them 'main'. Got {tasks!r}."
        )
    return names


def order_losses(tasks: Sequence[str], main: Tensor | None, aux: Aux | None) -> list[Tensor | None]:
    """The losses as checked scalars: the main loss, then one per task of ``tasks``; ``None`` where one is missing."""
    if type(aux) is dict and len(aux) == len(tasks):
        given = [main, *map(aux.get, tasks)]
        if all(map(_is_plain, given)):  # as in nearly all steps
            return given
    aux = {} if aux is None else aux
    if not isinstance(aux, Mapping):
        raise TypeError(
            f"`aux` should map task names to losses, such as {{{tasks[0]!r}: loss}}. Got {type(aux).__name__}."
        )
    unknown = sorted(set(aux) - set(tasks))
    if unknown:
        raise ValueError(
            f"Unknown auxiliary task {', '.join(map(repr, unknown))}. Known: {', '.join(tasks)}. "
            "Use one of these names, or list the task in `tasks` when making the Reweighter."
        )
    named = {"main": main, **aux}
    if all(loss is None for loss in named.values()):
        raise ValueError(f"No loss was given. Pass `main`, or at least one of {', '.join(tasks)} in `aux`.")
    return [_check_loss(name, named.get(name)) for name in ("main", *tasks)]


def take_batch(
    tasks: Sequence[str],
    main: Tensor | None,
    aux: Aux | None,
    steer: Tensor | None,
    closure: Closure | None,
    num_examples: int | None,
    counts: Mapping[str, float] | None,
) -> Batch:
    """What a call gets, checked; a closure that is given alone computes the losses."""
    steering, start = _check_steer(steer, closure), None
    if closure is not None and main is None and aux is None:
        start = RandomState()
        main, aux = closure()
    losses = order_losses(tasks, main, aux)
    measured = losses if steering is None else [steering, *losses[1:]]
    return Batch(losses, measured, closure, start, num_examples, _check_counts(tasks, counts))


def _check_counts(tasks: Sequence[str], counts: Mapping[str, float] | None) -> Mapping[str, float]:
    counts = {} if counts is None else counts
    wrong = {name: count for name, count in counts.items() if name not in tasks or not 0 <= count < math.inf}
    if wrong:
        raise ValueError(
            f"`counts` should map names of auxiliary tasks ({', '.join(tasks)}) to numbers of at least 0. "
            f"Got {wrong!r}."
        )
    return counts


def _check_steer(steer: Tensor | None, closure: Closure | None) -> Tensor | None:
    if steer is not None and closure is not None:
        raise ValueError(
            "`steer` cannot be combined with a closure, which recomputes the main loss in its place. Pass `main` "
            "and `aux` without a closure, or leave `steer` out."
        )
    return _check_loss("steer", steer)


def _is_plain(loss: Tensor | None) -> bool:
    """Whether a loss is a scalar with a graph, which passes every check."""
    return type(loss) is Tensor and loss.requires_grad and loss.ndim == 0 and loss.is_floating_point()


def _check_loss(name: str, loss: Tensor | None) -> Tensor | None:
    if loss is None:
        return None
    if not isinstance(loss, Tensor) or not loss.is_floating_point():
        raise TypeError(f"Loss {name!r} should be a tensor of floating point numbers. Got {loss!r}.")
    if loss.numel() != 1:
        raise ValueError(
            f"Loss {name!r} has shape {tuple(loss.shape)}. Expected a single number: reduce it, "
            "for example with .mean()."
        )
    if torch.is_grad_enabled() and not loss.requires_grad:
        raise ValueError(
            f"Loss {name!r} has no graph (requires_grad=False): nothing can be learned from it. Was it detached, "
            "made under torch.no_grad(), or a constant for a task the batch does not hold? Leave such a task out."
        )
    return loss if loss.ndim == 0 else loss.reshape(())


def fill_missing(losses: Sequence[Tensor | None]) -> list[Tensor]:
    """Scalars of one precision, at least float32, on one device; 0 where a loss is missing."""
    given = [loss for loss in losses if loss is not None]
    dtype = torch.float32
    for loss in given:
        dtype = torch.promote_types(dtype, loss.dtype)
    zero = torch.zeros((), dtype=dtype, device=given[0].device)
    return [zero if loss is None else loss.to(zero) for loss in losses]


def leave_out(losses: Sequence[Tensor], kept: Tensor) -> list[Tensor]:
    """The losses, with 0 in place of those that are not ``kept`` [1 + K] of bool."""
    left = [loss if keep else torch.zeros_like(loss) for loss, keep in zip(losses, kept.tolist(), strict=True)]
    if torch.is_grad_enabled() and not any(loss.requires_grad for loss in left):
        left[0] = silence(torch.stack(list(losses)).sum())  # a process without any loss must still take part
    return left


def silence(*losses: Tensor) -> Tensor:
    """0, connected to the parameters of the losses (DistributedDataParallel waits for all of them), without gradient.

    Multiplying by 0 is not enough: 0 times an infinite derivative is NaN.
    """
    zero: Tensor = _Silence.apply(*losses)  # type: ignore[no-untyped-call]
    return zero


class _Silence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *losses: Tensor) -> Tensor:
        del ctx
        return torch.zeros_like(losses[0])

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        del grad_outputs
        return (None,) * len(ctx.needs_input_grad)


class ProcessMeans(NamedTuple):
    """The tasks over all processes together, [1 + K] each."""

    present: Tensor
    """Whether any process holds the task."""
    expected: Tensor
    """Whether any process expects the task."""
    values: Tensor
    """The mean loss over the processes that hold the task; 0 if none does."""
    scale: Tensor
    """The factor that turns a mean over all processes into a mean over those that hold the task."""
    factor: float = 1.0
    """The factor on this process's losses before they are measured: its part of the batch, in a common unit."""


def average_losses(losses: Tensor, present: Tensor, expected: Tensor, num_examples: int | None = None) -> ProcessMeans:
    """Averages the losses of this process [1 + K] with those of all others, in one message.

    Every process counts the same, or, with ``num_examples``, by its part of the batch.
    """
    several = num_processes() > 1
    by_examples = several and num_examples is not None
    count = 1 if num_examples is None or not several else num_examples
    share, wanted, values = mean_of_numbers([count * present.to(losses), expected.to(losses), count * losses.detach()])
    if several and bool(share.isnan().any()):
        raise_together(None)  # another process could not compute its losses
    held = share > 0
    # Without a common unit, gradients times the number of examples might overflow.
    unit = share.max() if by_examples else torch.ones_like(share[0])
    scale = torch.where(held, unit / share, torch.zeros_like(share)) if several else torch.ones_like(share)
    values = torch.where(held, values / unit * scale, torch.zeros_like(values))
    factor = count / float(unit) if by_examples else 1.0
    return ProcessMeans(held.cpu(), wanted.cpu() > 0, values, scale, factor)


def multiply(closure: Closure | None, factor: float) -> Closure | None:
    """A closure that recomputes ``factor`` times the losses."""
    if closure is None:
        return None

    def multiplied() -> tuple[Tensor | None, Aux]:
        main, aux = closure()
        return None if main is None else factor * main, {name: factor * loss for name, loss in aux.items()}

    return multiplied
