"""The public functions: they take losses and shared parameters in any accepted form, and return inner products."""

from collections.abc import Sequence

import torch
from torch import Tensor

from arml.gradients import backward
from arml.gradients.auto import Auto, attempt
from arml.gradients.backward import Engine, TaskLosses
from arml.gradients.compiled import check_compiled
from arml.gradients.shared import Shared, parameters_by_name


def alignment(
    losses: Tensor | TaskLosses, shared: Shared, directions: Tensor, *, engine: Engine | Auto | None = None
) -> Tensor:
    """A [D, 1 + K] with A_di = <g_i, sum_j c_dj g_j>, g_i the gradient of ``losses[i]``.

    Gradients are with respect to the shared parameters; frozen ones are left out. ``losses`` are scalars, main task
    first; a list is cheaper than a stacked vector. The graph of ``losses`` stays usable, and no ``.grad`` is touched.

    >>> theta = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> losses = torch.stack([theta.sum(), theta[0] ** 2])          # gradients (1, 1) and (2, 0)
    >>> alignment(losses, [theta], directions=torch.tensor([[1.0, 0.0], [1.0, -1.0]]))
    tensor([[ 2.,  2.],
            [ 0., -2.]])
    """
    scalars, trainable = _scalars(losses), _trainable(shared)
    if directions.ndim != 2 or directions.shape[1] != len(scalars):
        raise ValueError(f"Expected directions of shape [D, {len(scalars)}]. Got {tuple(directions.shape)}.")
    if not trainable:
        return scalars[0].new_zeros(directions.shape)
    with torch.autocast(scalars[0].device.type, enabled=False):  # as for any backward pass
        check_compiled(scalars, trainable)
        if engine is None or isinstance(engine, Auto):
            return (engine or Auto())(scalars, trainable, directions)
        return attempt(engine, scalars, trainable, directions, is_last=True)


def gram(losses: Tensor | TaskLosses, shared: Shared) -> Tensor:
    """The Gram matrix <g_i, g_j> of the task gradients, [1 + K, 1 + K].

    >>> theta = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> gram(torch.stack([theta.sum(), theta[0] ** 2]), [theta])
    tensor([[2., 2.],
            [2., 4.]])
    """
    scalars, trainable = _scalars(losses), _trainable(shared)
    if not trainable:
        return scalars[0].new_zeros(len(scalars), len(scalars))
    with torch.autocast(scalars[0].device.type, enabled=False):
        check_compiled(scalars, trainable)
        return backward.gram_matrix(scalars, trainable)


def norms(losses: Tensor | TaskLosses, shared: Shared) -> Tensor:
    """The length ||g_i|| of every task's gradient, [1 + K].

    >>> theta = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> norms(torch.stack([(3 * theta[0] + 4 * theta[1]), theta[0] ** 2]), [theta])
    tensor([5., 2.])
    """
    scalars, trainable = _scalars(losses), _trainable(shared)
    if not trainable:
        return scalars[0].new_zeros(len(scalars))
    with torch.autocast(scalars[0].device.type, enabled=False):
        check_compiled(scalars, trainable)
        return backward.gradient_norms(scalars, trainable)


def _scalars(losses: Tensor | TaskLosses) -> TaskLosses:
    scalars = list(losses) if not isinstance(losses, Tensor) or losses.ndim else [losses]
    shapes = [tuple(loss.shape) for loss in scalars]
    if len(scalars) < 2 or any(shapes) or not any(loss.requires_grad for loss in scalars):
        raise ValueError(
            "Expected one main and at least one auxiliary loss: scalars with their graph, main task first. "
            f"Got shapes {shapes}, requires_grad {[loss.requires_grad for loss in scalars]}."
        )
    return scalars


def _trainable(shared: Shared) -> Sequence[Tensor]:
    return [p for p in parameters_by_name(shared).values() if p.requires_grad]
