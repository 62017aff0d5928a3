"""The second backward pass without needless products.

In the second backward pass of :func:`arml.gradients.backward.double_backward` every layer receives a tangent of its
input and tangents of its parameters, and should return the tangent of its output. PyTorch's formulas for convolutions
and BatchNorm also compute derivatives with respect to the layer's input and weights. These belong to the forward graph
and cannot lead to w, so they are thrown away at once. All but one of a convolution's needless products come from the
tangent of the input. So that tangent is held back, and pushed through the layer here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from torch import Tensor

Node: TypeAlias = Any
"""A node of autograd's graph, with the tensors and settings it saved; PyTorch declares none of them."""
Tangents: TypeAlias = tuple[Tensor | None, ...]


def _push_through_convolution(node: Node, tangent: Tensor) -> Tensor:
    """A convolution is linear in its input."""
    saved = (node._saved_stride, node._saved_padding, node._saved_dilation)
    kind = (node._saved_transposed, node._saved_output_padding, node._saved_groups)
    # No bias: it adds a constant to the output, whatever the input.
    through: Tensor = torch.ops.aten.convolution(tangent, node._saved_weight, None, *saved, *kind)
    return through


def _push_through_batch_norm(node: Node, tangent: Tensor) -> Tensor:
    """BatchNorm's derivative is a symmetric matrix per channel, so its backward pass also maps tangents forward.

    With n numbers in a channel, and x the normalised ones: weight / std (1 - 11^T / n - x x^T / n).
    """
    running = (node._saved_running_mean, node._saved_running_var)
    batch = (node._saved_save_mean, node._saved_save_invstd)
    # The mask asks for the derivative to the input alone; those to weight and bias would be thrown away.
    rest = (node._saved_train, node._saved_eps, [True, False, False])
    through: Tensor = torch.ops.aten.native_batch_norm_backward(
        tangent, node._saved_input, node._saved_weight, *running, *batch, *rest
    )[0]
    return through


LAYERS: dict[str, Callable[[Node, Tensor], Tensor]] = {
    "ConvolutionBackwardBackward0": _push_through_convolution,
    "NativeBatchNormBackwardBackward0": _push_through_batch_norm,
}
"""Nodes of the second graph by name, and how to push a tangent of the input through the layer of each."""


@contextmanager
def skip_needless_products(u: Iterable[Tensor]) -> Iterator[None]:
    """Inside, a backward pass from ``u``, gradients kept as a graph, gives the same numbers for less work.

    Only layers whose parameters ``u`` holds gradients of are changed; all others follow PyTorch's formulas.
    """
    # A set, because weight and bias of a layer come from one node. The gradient of a layer that is used twice is a sum
    # instead, so such a layer stays with PyTorch's formulas.
    nodes = {part.grad_fn for part in u if part.grad_fn is not None and part.grad_fn.name() in LAYERS}
    handles = [handle for node in nodes for handle in _add_hooks(node)]
    try:
        yield
    finally:
        # The next pass through this graph may need the products that were skipped, as a gradient penalty does.
        for handle in handles:
            handle.remove()


def _add_hooks(node: Node) -> Sequence[Any]:
    held: list[Tensor] = []

    def before(tangents: Tangents) -> Tangents | None:
        first, *others = tangents
        # Without any other tangent the node would compute nothing, and a hook cannot replace a result that is missing.
        if first is None or all(other is None for other in others):
            return None
        held.append(first)
        return (None, *others)

    def after(results: Tangents, _: Tangents) -> Tangents | None:
        if not held:
            return None
        # The results are linear in the tangents: what came from the parameters' tangents is there, the rest is added.
        partial, *others = results
        through = LAYERS[node.name()](node, held.pop())
        return (through if partial is None else partial + through, *others)

    return node.register_prehook(before), node.register_hook(after)
