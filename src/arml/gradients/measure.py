"""The door: losses and shared parameters in any accepted form in, inner products out."""

from collections.abc import Sequence

import torch
from torch import Tensor

from arml.gradients import backward
from arml.gradients.auto import Auto
from arml.gradients.backward import Engine
from arml.gradients.shared import Shared, by_name


def alignment(losses: Tensor, shared: Shared, directions: Tensor, *, engine: Engine | None = None) -> Tensor:
    """A [D, 1 + K] with A_di = <g_i, sum_j c_dj g_j>, g_i the gradient of ``losses[i]`` to the shared parameters.

    Frozen parameters are left out. The graph of ``losses`` stays usable, and no ``.grad`` is touched.

    >>> theta = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> losses = torch.stack([theta.sum(), theta[0] ** 2])          # gradients (1, 1) and (2, 0)
    >>> alignment(losses, [theta], directions=torch.tensor([[1.0, 0.0], [1.0, -1.0]]))
    tensor([[ 2.,  2.],
            [ 0., -2.]])
    """
    trainable = _trainable(losses, shared)
    if directions.ndim != 2 or directions.shape[1:] != losses.shape:
        raise ValueError(f"Expected directions of shape [D, {len(losses)}]. Got {tuple(directions.shape)}.")
    if not trainable:
        return losses.new_zeros(directions.shape)
    with torch.autocast(losses.device.type, enabled=False):  # as for any backward pass
        return (engine or Auto())(losses, trainable, directions)


def gram(losses: Tensor, shared: Shared) -> Tensor:
    """The Gram matrix <g_i, g_j> of the task gradients, [1 + K, 1 + K].

    >>> theta = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> gram(torch.stack([theta.sum(), theta[0] ** 2]), [theta])
    tensor([[2., 2.],
            [2., 4.]])
    """
    trainable = _trainable(losses, shared)
    if not trainable:
        return losses.new_zeros(len(losses), len(losses))
    with torch.autocast(losses.device.type, enabled=False):
        return backward.gram_matrix(losses, trainable)


def norms(losses: Tensor, shared: Shared) -> Tensor:
    """The length ||g_i|| of every task's gradient, [1 + K].

    >>> theta = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> norms(torch.stack([(3 * theta[0] + 4 * theta[1]), theta[0] ** 2]), [theta])
    tensor([5., 2.])
    """
    trainable = _trainable(losses, shared)
    if not trainable:
        return torch.zeros_like(losses)
    with torch.autocast(losses.device.type, enabled=False):
        return backward.gradient_norms(losses, trainable)


def _trainable(losses: Tensor, shared: Shared) -> Sequence[Tensor]:
    if losses.ndim != 1 or not losses.requires_grad:
        raise ValueError(
            f"Expected losses of shape [1 + K] with their graph. Got shape {tuple(losses.shape)}, "
            f"requires_grad={losses.requires_grad}. Stack the scalar losses, main task first."
        )
    return [p for p in by_name(shared).values() if p.requires_grad]
