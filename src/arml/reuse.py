r"""The backward pass of a training step, from gradients that an update of the weights has just computed.

With factors f_i on the losses L_i, the joint loss has the gradient :math:`\sum_i f_i g_i`. Where an update stored all
:math:`g_i`, this sum replaces the pass through the shared part of the network; only the rest, such as heads, is passed.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
import torch.distributed as dist
from torch import Tensor

from arml.gradients.backward import add_up
from arml.gradients.graph import walk
from arml.gradients.kept import Keeper, TaskGradients

Losses: TypeAlias = Sequence[Tensor | None]
"""One per task, main task first; ``None`` where one is missing."""


def find_reusable(keeper: Keeper, losses: Losses) -> TaskGradients | None:
    """The kept gradients, if their sum is what ``backward()`` of the joint loss would give; ``None`` if not."""
    kept = keeper.last
    if kept is None or not keeper.repeatable or (dist.is_available() and dist.is_initialized()):
        return None  # DistributedDataParallel waits for every parameter to be reached by the pass itself
    if kept.measured() != [loss is not None for loss in losses]:
        return None  # a task without a gradient may still be part of the joint loss, as one that is not finite is
    return None if any(map(_is_hooked, kept.shared)) else kept


def find_factors(joint_loss: Callable[[Losses], Tensor], losses: Losses) -> list[float | None]:
    """The factor on every loss in ``joint_loss(losses)``; ``None`` where a loss is not part of it.

    >>> find_factors(lambda losses: losses[1] + 3 * losses[2], list(torch.ones(3)))
    [None, 1.0, 3.0]
    """
    # Fresh scalars, because one of the caller's losses may be computed from another one.
    scalars = [None if loss is None else loss.detach().requires_grad_() for loss in losses]
    joint_loss(scalars).backward()
    return [None if one is None or one.grad is None else float(one.grad) for one in scalars]


def backward_from_tasks(joint: Tensor, kept: TaskGradients, factors: Sequence[float | None]) -> None:
    """Fills ``.grad`` as ``joint.backward()`` does, where gradient i of ``kept`` counts ``factors[i]`` times."""
    mine = {id(p) for p in kept.shared}
    leaves = [node.variable for node in walk([joint]) if hasattr(node, "variable")]
    others = [leaf for leaf in leaves if id(leaf) not in mine]
    if others:
        torch.autograd.backward(joint, inputs=others)
    _EnterGradients.apply(kept, factors, *kept.shared).backward()  # type: ignore[no-untyped-call]


class _EnterGradients(torch.autograd.Function):
    """Sends the sum of task gradients to the parameters, where torch adds it to ``.grad`` and calls hooks.

    The sum is made inside ``backward()``: nothing else refers to it then, and torch takes it over without a copy.
    """

    @staticmethod
    def forward(ctx: Any, kept: TaskGradients, factors: Sequence[float | None], *shared: Tensor) -> Tensor:
        ctx.kept, ctx.used = kept, [(i, factor) for i, factor in enumerate(factors) if factor is not None]
        return shared[0].new_zeros(())

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        del grad_outputs
        kept, used = ctx.kept, ctx.used
        total = add_up([kept.parts[i] for i, _ in used], [factor for _, factor in used])
        reached = (any(kept.touched[i][j] for i, _ in used) for j in range(len(total)))
        # A parameter that no loss depends on keeps its .grad of None, so that optimisers pass over it.
        pairs = zip(kept.shared, total, reached, strict=True)
        return None, None, *(part.to(p.dtype) if touched else None for p, part, touched in pairs)


def _is_hooked(p: Tensor) -> bool:
    """Whether a hook has changed the gradient of ``p`` already; at the parameter it would do so a second time."""
    return not p.is_leaf or bool(p._backward_hooks)
