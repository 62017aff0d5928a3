"""Inner products of task gradients from the graph of the losses: the only file that calls ``autograd.grad``.

Letters: losses L_i (0 is the main task), shared parameters theta, gradients g_i = dL_i / dtheta, directions c_d,
their gradients r_d = sum_j c_dj g_j, and the answer A_di = <g_i, r_d>.

Nothing here touches ``.grad``, ``requires_grad``, buffers or random state, and the graph stays usable for the
caller's own ``backward()``. Under ``torch.distributed`` g_i is the mean over processes: r_d is averaged before,
and A after the inner products are taken.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor
from torch.autograd import grad

from arml._distributed import mean_over_processes

Gradient: TypeAlias = list[Tensor]
"""One tensor per shared parameter, at least float32."""
Losses: TypeAlias = Sequence[Tensor]
"""1 + K scalars. Not one vector: the derivative of one entry of a vector runs through the graphs of all others, too."""
Engine: TypeAlias = Callable[[Losses, Sequence[Tensor], Tensor], Tensor]
"""(losses [1 + K], shared parameters, directions [D, 1 + K]) -> A [D, 1 + K]."""


def pairwise(losses: Losses, shared: Sequence[Tensor], directions: Tensor) -> Tensor:
    """One backward pass and one stored gradient for each task: time and memory grow with K. Best for K <= 2."""
    jacobian = _jacobian(losses, shared)
    weights = directions.to(jacobian)
    (r,) = mean_over_processes([weights @ jacobian])
    return averaged(r @ jacobian.T)


def one_by_one(losses: Losses, shared: Sequence[Tensor], directions: Tensor) -> Tensor:
    """One backward pass for each task and each direction; memory does not grow with K. Works wherever training does."""
    rs = [direction_gradient(losses, shared, c) for c in directions]
    rows = [torch.stack([dot(g, r) for r in rs]) for g in (task_gradient(loss, shared) for loss in losses)]
    return averaged(torch.stack(rows, dim=1))


def double_backward(losses: Losses, shared: Sequence[Tensor], directions: Tensor) -> Tensor:
    """Differentiates the gradient of the weighted sum with respect to the weights: cost does not grow with K.

    u(w) = sum_i w_i g_i is linear in w, so d<u(w), r>/dw_i = <g_i, r>, at any w. Taking w = c_1 makes u the first r.
    """
    stacked = torch.stack(list(losses))
    w = directions[0].to(stacked).detach().requires_grad_()
    u = differentiate((w * stacked).sum(), shared, create_graph=True)
    rs = [mean_over_processes([part.detach() for part in u])]
    rs += [direction_gradient(losses, shared, c) for c in directions[1:]]
    return averaged(torch.stack([_slope(dot(u, r), w) for r in rs]))


def gram_matrix(losses: Losses, shared: Sequence[Tensor]) -> Tensor:
    """All inner products <g_i, g_j>, [1 + K, 1 + K]. Needs every gradient at once: memory grows with K."""
    (jacobian,) = mean_over_processes([_jacobian(losses, shared)])
    return jacobian @ jacobian.T


def gradient_norms(losses: Losses, shared: Sequence[Tensor]) -> Tensor:
    """The length of every task's gradient, [1 + K]: one backward pass each, memory of one gradient."""
    gradients = (mean_over_processes(task_gradient(loss, shared)) for loss in losses)
    return torch.stack([dot(g, g).sqrt() for g in gradients])


def direction_gradient(losses: Losses, shared: Sequence[Tensor], c: Tensor) -> Gradient:
    """r = sum_j c_j g_j, the mean over processes."""
    return mean_over_processes(local_direction_gradient(losses, shared, c))


def local_direction_gradient(losses: Losses, shared: Sequence[Tensor], c: Tensor) -> Gradient:
    """sum_j c_j g_j on this process's part of the batch."""
    stacked = torch.stack(list(losses))
    return task_gradient((c.to(stacked) * stacked).sum(), shared)


def task_gradient(loss: Tensor, shared: Sequence[Tensor]) -> Gradient:
    """The gradient of one scalar, zero where it does not depend on a parameter."""
    if not loss.requires_grad:  # a constant stands for a task that is not in the batch
        return [torch.zeros_like(p, dtype=torch.promote_types(p.dtype, torch.float32)) for p in shared]
    return differentiate(loss, shared, create_graph=False)


def differentiate(loss: Tensor, shared: Sequence[Tensor], *, create_graph: bool) -> Gradient:
    """The gradient of ``loss`` in at least float32; the graph of ``loss`` is kept for the caller."""
    parts = grad(loss, shared, retain_graph=True, create_graph=create_graph, materialize_grads=True)
    return [part.to(torch.promote_types(part.dtype, torch.float32)) for part in parts]


def averaged(products: Tensor) -> Tensor:
    """Inner products averaged over processes, without graph."""
    return mean_over_processes([products.detach()])[0]


def dot(a: Sequence[Tensor], b: Sequence[Tensor]) -> Tensor:
    """The inner product of two gradients."""
    return torch.stack([(x * y).sum() for x, y in zip(a, b, strict=True)]).sum()


def depends_on(losses: Losses, shared: Sequence[Tensor]) -> bool:
    """Whether any of the losses was computed from any of the shared parameters."""
    parts = grad(torch.stack(list(losses)).sum(), shared, retain_graph=True, allow_unused=True)
    return any(part is not None for part in parts)


def _slope(product: Tensor, w: Tensor) -> Tensor:
    if not product.requires_grad:  # no loss touches any shared parameter
        return torch.zeros_like(w)
    (slope,) = grad(product, w, retain_graph=True, materialize_grads=True)
    return slope


def _jacobian(losses: Losses, shared: Sequence[Tensor]) -> Tensor:
    rows = [torch.cat([part.flatten() for part in task_gradient(loss, shared)]) for loss in losses]
    return torch.stack(rows)
