"""Inner products of task gradients from the graph of the losses: the only file that calls ``autograd.grad``.

Letters: losses L_i (0 is the main task), shared parameters theta, gradients g_i = dL_i / dtheta, directions c_d,
their gradients r_d = sum_j c_dj g_j, and the answer A_di = <g_i, r_d>.

Nothing here touches ``.grad``, ``requires_grad``, buffers or random state, and the graph stays usable for the
caller's own ``backward()``. Under ``torch.distributed`` g_i is the mean over processes: every engine hands its r_d to
``average`` once; the A it returns, its own part of the batch against the averaged r_d, is averaged by the caller.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import reduce
from itertools import islice
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.autograd import grad
from torch.autograd.graph import GradientEdge

from arml._distributed import mean_over_processes
from arml.gradients.buffers import lend_buffers
from arml.gradients.graph import Node, walk
from arml.gradients.kept import TaskGradients, forbid_reuse, hand_over
from arml.gradients.second import skip_needless_products

Gradient: TypeAlias = Sequence[Tensor]
"""One tensor per shared parameter, at least float32; or a single tensor, all of them flattened."""
TaskLosses: TypeAlias = Sequence[Tensor]
"""1 + K scalars. Not one vector: differentiating one entry of a vector would run through the graphs of all others."""
Average: TypeAlias = Callable[[Sequence[Gradient]], list[list[Tensor]]]
"""r_1 ... r_D of this process -> their means over all processes."""
Engine: TypeAlias = Callable[[TaskLosses, Sequence[Tensor], Tensor, Average], Tensor]
"""(losses [1 + K], shared parameters, directions [D, 1 + K], average) -> this process's A [D, 1 + K]."""

MISMATCH = 0.02
"""How far sum_i w_i <g_i, r> may be from <sum_i w_i g_i, r>, as a share of sum_i |w_i <g_i, r>|; more is an error."""
REENTRANT = (
    "A part of the network is checkpointed with use_reentrant=True, which hides the gradients of single losses. Call "
    "torch.utils.checkpoint.checkpoint(..., use_reentrant=False); in transformers, "
    "gradient_checkpointing_enable(gradient_checkpointing_kwargs={'use_reentrant': False})."
)
_unit_directions: ContextVar[bool] = ContextVar("unit_directions", default=False)
_touched: ContextVar[set[int]] = ContextVar("touched")
HIDDEN = "an operation hides its second derivative from autograd"


def pairwise(losses: TaskLosses, shared: Sequence[Tensor], directions: Tensor, average: Average) -> Tensor:
    """One backward pass and one stored gradient per task: time and memory grow with K. Best for K <= 2.

    The gradients are also offered to the training step, which can add them up instead of computing them again.
    """
    found = [_find_parts(loss, shared, create_graph=False) for loss in losses]
    if any(part is not None and part.is_sparse for parts in found for part in parts):
        forbid_reuse()  # the sum would be dense, and some optimisers want sparse gradients
    gradients = [_fill(parts, shared) for parts in found]
    hand_over(TaskGradients(shared, gradients, [[part is not None for part in parts] for parts in found]))
    rs = average([add_up(gradients, c) for c in directions.tolist()])
    return torch.stack([torch.stack([dot(g, r) for g in gradients]) for r in rs])


def add_up(gradients: Sequence[Gradient], factors: Sequence[float]) -> list[Tensor]:
    """sum_i factors_i gradients_i, in new tensors. No gradient is flattened first: that would copy all of them."""
    (first, g), *others = [pair for pair in zip(factors, gradients, strict=True) if pair[0]] or [(0.0, gradients[0])]
    total = [first * part for part in g]
    for factor, other in others:
        torch._foreach_add_(total, list(other), alpha=factor)
    return total


def one_by_one(losses: TaskLosses, shared: Sequence[Tensor], directions: Tensor, average: Average) -> Tensor:
    """One backward pass per task and per direction; memory does not grow with K. Works wherever training does."""
    rs = average(direction_gradients(losses, shared, directions))
    rows = [torch.stack([dot(g, r) for r in rs]) for g in (task_gradient(loss, shared) for loss in losses)]
    return torch.stack(rows, dim=1)


def double_backward(losses: TaskLosses, shared: Sequence[Tensor], directions: Tensor, average: Average) -> Tensor:
    """Differentiates the gradient of the weighted sum with respect to the weights: cost does not grow with K.

    u(w) = sum_i w_i g_i is linear in w, so d<u(w), r>/dw_i = <g_i, r>, at any w. Taking w = c_1 makes u the first r.
    """
    stacked = torch.stack(list(losses))
    w = directions[0].to(stacked).detach().requires_grad_()
    u = differentiate((w * stacked).sum(), shared, create_graph=True)
    values = [part.detach() for part in u]
    rs = average([values, *direction_gradients(losses, shared, directions[1:])])
    with skip_needless_products(u):
        rows = [_slope(u, r, w) for r in rs]
    for row, r in zip(rows, rs, strict=True):
        check_sum(row, w, dot(values, r), lambda: HIDDEN)
    return torch.stack(rows).detach()


@contextmanager
def take_unit_directions(*, enabled: bool) -> Iterator[None]:
    """Inside, engines see r_d / ||r_d||: in float16 a scaled r_d would overflow where it meets scaled losses."""
    token = _unit_directions.set(enabled)
    try:
        yield
    finally:
        _unit_directions.reset(token)


def adapt_directions(engine: Engine) -> Engine:
    """``engine``, or inside :func:`take_unit_directions` one with the same answer, because that is linear in r."""
    if not _unit_directions.get():
        return engine

    def run(losses: TaskLosses, shared: Sequence[Tensor], directions: Tensor, average: Average) -> Tensor:
        lengths: list[Tensor] = []

        def average_to_unit(rs: Sequence[Gradient]) -> list[list[Tensor]]:
            means = average(rs)
            lengths.extend(length.where(length > 0, 1) for length in (dot(r, r).sqrt() for r in means))
            return [
                [part if is_untouched(part) else part / length for part in r]
                for r, length in zip(means, lengths, strict=True)
            ]

        products = engine(losses, shared, directions, average_to_unit)
        return products * torch.stack(lengths).to(products).unsqueeze(1)

    return run


def check_sum(row: Tensor, w: Tensor, expected: Tensor, explain: Callable[[], str]) -> None:
    """Raises unless sum_i w_i <g_i, r> equals <sum_i w_i g_i, r>, which a backward pass gives."""
    terms = (w.to(row) * row).detach()
    found, expected = terms.sum(), expected.detach()
    if expected.isfinite() and (found - expected).abs() > MISMATCH * terms.abs().sum():
        raise RuntimeError(
            f"{explain()}: along the direction losses change by {found:.4g}, their graph says {expected:.4g}"
        )


def gram_matrix(losses: TaskLosses, shared: Sequence[Tensor]) -> Tensor:
    """All inner products <g_i, g_j>, [1 + K, 1 + K]. Needs every gradient at once: memory grows with K."""
    (jacobian,) = mean_over_processes([_jacobian(losses, shared)])
    return jacobian @ jacobian.T


def gradient_norms(losses: TaskLosses, shared: Sequence[Tensor]) -> Tensor:
    """The length of every task's gradient, [1 + K]: one backward pass per task, memory for one gradient."""
    gradients = (mean_over_processes(task_gradient(loss, shared)) for loss in losses)
    return torch.stack([dot(g, g).sqrt() for g in gradients])


def gradient_sizes(losses: TaskLosses, shared: Sequence[Tensor]) -> Tensor:
    """About how long the gradients of this process are, up to a common factor; cheap.

    It measures the shared parameters next to the losses, so that no backward pass goes through the whole network.
    """
    near = nearest_parameters(losses, shared, most=4) or shared
    return torch.stack([dot(g, g).sqrt() for g in (task_gradient(loss, near) for loss in losses)])


def direction_gradients(losses: TaskLosses, shared: Sequence[Tensor], directions: Tensor) -> list[Gradient]:
    """r_d = sum_j c_dj g_j on this process's part of the batch, for every direction."""
    stacked = torch.stack(list(losses))
    return [task_gradient((c.to(stacked) * stacked).sum(), shared) for c in directions]


def task_gradient(loss: Tensor, shared: Sequence[Tensor]) -> Gradient:
    """The gradient of one scalar, zero where it does not depend on a parameter."""
    return differentiate(loss, shared, create_graph=False)


def gradient_at(loss: Tensor, node: Node, saved: str) -> tuple[Tensor, Tensor]:
    """The gradient of ``loss`` at the output of ``node``, and what the node has kept under the name ``saved``."""
    (gradient,) = _grad(loss, (GradientEdge(node, 0),), retain_graph=True)
    with lend_buffers():  # what checkpointing left out is computed again
        kept: Tensor = getattr(node, saved)
    return gradient, kept


def leads_to(loss: Tensor, node: Node) -> bool:
    """Whether the gradient of ``loss`` goes through ``node``: a graph may also join what other losses go through."""
    (gradient,) = _grad(loss, (GradientEdge(node, 0),), retain_graph=True, allow_unused=True)
    return gradient is not None


def differentiate(loss: Tensor, shared: Sequence[Tensor], *, create_graph: bool) -> list[Tensor]:
    """The gradient of ``loss`` in at least float32; the graph of ``loss`` is kept for the caller."""
    return _fill(_find_parts(loss, shared, create_graph=create_graph), shared)


def _find_parts(loss: Tensor, shared: Sequence[Tensor], *, create_graph: bool) -> Sequence[Tensor | None]:
    """One part per shared parameter; ``None`` where ``loss`` does not depend on it."""
    if not loss.requires_grad:  # a constant stands for a task that is missing from the batch
        return [None] * len(shared)
    parts = _grad(loss, shared, retain_graph=True, create_graph=create_graph, allow_unused=True)
    _touched.get(set()).update(id(p) for p, part in zip(shared, parts, strict=True) if part is not None)
    return parts


def _fill(parts: Sequence[Tensor | None], shared: Sequence[Tensor]) -> list[Tensor]:
    return [_zero(p) if part is None else _at_least_float32(part) for part, p in zip(parts, shared, strict=True)]


@contextmanager
def record_touched() -> Iterator[set[int]]:
    """Yields a set that collects the ids of the parameters that losses differentiated inside depend on."""
    found: set[int] = set()
    token = _touched.set(found)
    try:
        yield found
    finally:
        _touched.reset(token)


def dot(a: Gradient, b: Gradient) -> Tensor:
    """The inner product of two gradients. No product of the size of a gradient is stored."""
    return torch.stack([torch.dot(x.reshape(-1), y.reshape(-1)) for x, y in zip(a, b, strict=True)]).sum()


def lowest_precision(losses: TaskLosses) -> float:
    """The relative rounding error of the least precise numbers in the graph: that of bfloat16 under autocast."""
    dtypes = {one.dtype for node in walk(losses) for one in getattr(node, "_input_metadata", ())}
    return max(torch.finfo(dtype).eps for dtype in {losses[0].dtype, *dtypes} if dtype.is_floating_point)


def nearest_parameters(losses: TaskLosses, shared: Sequence[Tensor], most: int) -> Sequence[Tensor]:
    """Those of ``shared`` that are the fewest operations away from the losses; none if these do not reach any."""
    return list(islice(_by_distance(losses, shared), most))


def last_layer(loss: Tensor, shared: Sequence[Tensor]) -> Sequence[Tensor]:
    """Those of ``shared`` between ``loss`` and the first matrix or kernel among them, with it; all if there is none.

    >>> layer, norm = torch.nn.Linear(2, 3), torch.nn.LayerNorm(3)
    >>> loss = norm(layer(torch.ones(4, 2)).relu()).sum()
    >>> [tuple(p.shape) for p in last_layer(loss, [*layer.parameters(), *norm.parameters()])]
    [(3,), (3,), (3,), (3, 2)]
    """
    found = []
    for p in _by_distance([loss], shared):
        found.append(p)
        if p.ndim > 1:
            break
    return found


def _by_distance(losses: TaskLosses, shared: Sequence[Tensor]) -> Iterator[Tensor]:
    """Those of ``shared`` that the losses reach, the nearest first."""
    wanted = {id(p): p for p in shared}
    for node in walk(losses):
        p = wanted.pop(id(getattr(node, "variable", None)), None)
        if p is not None:
            yield p


def _grad(outputs: Tensor | Sequence[Tensor], inputs: Tensor | Sequence[Any], **options: Any) -> tuple[Tensor, ...]:
    """Gradients. Layers that checkpointing computes again leave no trace in their buffers."""
    try:
        with lend_buffers() as lent:
            found = grad(outputs, inputs, **options)
    except RuntimeError as error:
        if "use_reentrant" in str(error):
            raise ValueError(REENTRANT) from error
        raise
    if any(lent.values()):
        forbid_reuse()  # the caller's backward pass also moves the buffers of layers that it computes again
    return found


def _slope(u: Gradient, r: Gradient, w: Tensor) -> Tensor:
    """d<u(w), r>/dw, over the parameters that some loss depends on; only their u has a graph."""
    touched = [(part, along) for part, along in zip(u, r, strict=True) if part.requires_grad]
    if not touched:
        return torch.zeros_like(w)
    parts, along = zip(*touched, strict=True)
    (slope,) = _grad(parts, w, grad_outputs=along, retain_graph=True, materialize_grads=True)
    return slope


def is_untouched(part: Tensor) -> bool:
    """Whether a part of a gradient is one expanded number, and that number is 0.

    >>> is_untouched(_zero(torch.ones(3))), is_untouched(torch.ones(1).expand(3)), is_untouched(torch.zeros(3))
    (True, False, False)
    """
    return part.numel() > 1 and not any(part.stride()) and not bool(part[(0,) * part.ndim])


def _zero(p: Tensor) -> Tensor:
    """The gradient of a parameter that the loss does not depend on: one 0, expanded without memory."""
    return torch.zeros((), dtype=torch.promote_types(p.dtype, torch.float32), device=p.device).expand(p.shape)


def _common_dtype(shared: Sequence[Tensor]) -> torch.dtype:
    return reduce(torch.promote_types, (p.dtype for p in shared))


def _at_least_float32(part: Tensor) -> Tensor:
    dense = part.to_dense() if part.is_sparse else part  # Embedding(sparse=True)
    return dense.to(torch.promote_types(part.dtype, torch.float32))


def _jacobian(losses: TaskLosses, shared: Sequence[Tensor]) -> Tensor:
    """All gradients, [1 + K, P], written row by row: stacking the rows at the end would need twice the memory."""
    dtype = torch.promote_types(_common_dtype(shared), torch.float32)
    rows = torch.empty(len(losses), sum(p.numel() for p in shared), dtype=dtype, device=losses[0].device)
    for row, loss in zip(rows, losses, strict=True):
        torch.cat([part.reshape(-1) for part in task_gradient(loss, shared)], out=row)
    return rows
