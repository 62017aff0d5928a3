"""The second backward pass without the products that nobody asked for.

In the second backward pass of :func:`arml.gradients.backward.double_backward` every layer is handed a tangent of its
input and tangents of its parameters, and what is asked of it is the tangent of its output. PyTorch's formulas for
convolutions and BatchNorm also work out derivatives with respect to the layer's input and weights, which belong to the
forward graph and cannot lead to w: they are thrown away at once. All but one product of a convolution are worked out
from the tangent of the input. So that tangent is held back, and pushed through the layer here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from torch import Tensor

Node: TypeAlias = Any
"""A node of autograd's graph, with the tensors and settings it saved; PyTorch declares none of them."""
Tangents: TypeAlias = tuple[Tensor | None, ...]


def _through_convolution(node: Node, tangent: Tensor) -> Tensor:
    """A convolution is linear in its input."""
    saved = (node._saved_stride, node._saved_padding, node._saved_dilation)
    kind = (node._saved_transposed, node._saved_output_padding, node._saved_groups)
    through: Tensor = torch.ops.aten.convolution(tangent, node._saved_weight, None, *saved, *kind)
    return through


def _through_batch_norm(node: Node, tangent: Tensor) -> Tensor:
    """BatchNorm's derivative is a symmetric matrix for each channel, so its backward pass is its forward tangent, too.

    With n numbers in a channel, of which x are the normalised ones: weight / std (1 - 11^T / n - x x^T / n).
    """
    running = (node._saved_running_mean, node._saved_running_var)
    batch = (node._saved_save_mean, node._saved_save_invstd)
    rest = (node._saved_train, node._saved_eps, [True, False, False])
    through: Tensor = torch.ops.aten.native_batch_norm_backward(
        tangent, node._saved_input, node._saved_weight, *running, *batch, *rest
    )[0]
    return through


LAYERS: dict[str, Callable[[Node, Tensor], Tensor]] = {
    "ConvolutionBackwardBackward0": _through_convolution,
    "NativeBatchNormBackwardBackward0": _through_batch_norm,
}
"""Nodes of the second graph, and how a tangent of the input goes through the layer they stand for."""


@contextmanager
def needless_products_left_out(u: Iterable[Tensor]) -> Iterator[None]:
    """Inside, a backward pass from ``u``, gradients kept as a graph, gives the same numbers for less work.

    Only layers whose weights ``u`` holds gradients of are changed; all others go PyTorch's way.
    """
    nodes = {part.grad_fn for part in u if part.grad_fn is not None and part.grad_fn.name() in LAYERS}
    handles = [handle for node in nodes for handle in _hooked(node)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _hooked(node: Node) -> Sequence[Any]:
    held: list[Tensor] = []

    def before(tangents: Tangents) -> Tangents | None:
        first, *others = tangents
        if first is None or all(other is None for other in others):  # a result that is missing cannot be put in place
            return None
        held.append(first)
        return (None, *others)

    def after(results: Tangents, _: Tangents) -> Tangents | None:
        if not held:
            return None
        partial, *others = results
        through = LAYERS[node.name()](node, held.pop())
        return (through if partial is None else partial + through, *others)

    return node.register_prehook(before), node.register_hook(after)
