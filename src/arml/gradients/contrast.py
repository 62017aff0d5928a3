"""What a task wants for some features and not for others: its gradient on the outputs' layer, centred.

Letters: the layer before a loss has outputs z_n = W h_n + b for the rows n of a batch, and r_n = dL / dz_n. The
gradient on W is sum_n r_n h_n^T. At first its largest part is (sum_n r_n) (mean h)^T, which raises or lowers outputs
for all rows alike: every task levels the random first outputs, a wrong one as much as a right one. The contrast is the
rest:

    C = sum_n r_n (h_n - mean h)^T

Contrasts of two tasks that train the same layer have a positive product if they want alike outputs for alike features.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from arml._distributed import mean_of_numbers, mean_over_processes
from arml.gradients.backward import TaskLosses, gradient_at
from arml.gradients.graph import Node, walk

LARGEST = 2**22
"""Entries of the largest W whose contrasts are computed: each takes as much memory as W."""
ROUNDING = 1e-10
"""|C|^2 as a share of that of the gradient on W, below which it is rounding, as for a batch of one row."""


class _Kind(NamedTuple):
    """An operation of autograd that multiplies rows by a matrix."""

    rows: str
    """Where it keeps the rows h."""
    weight: int
    """Which of its inputs is W."""
    features: int
    """The dimension of h and z that holds features and outputs."""


_KINDS = {
    "AddmmBackward0": _Kind("_saved_mat1", 2, -1),
    "MmBackward0": _Kind("_saved_self", 1, -1),
    "LinearBackward0": _Kind("_saved_input", 1, -1),
    "ConvolutionBackward0": _Kind("_saved_input", 1, 1),
}
_SAME_NUMBERS = ("TBackward0", "TransposeBackward0", "PermuteBackward0", "ViewBackward0", "ToCopyBackward0")
"""Operations that leave a matrix what it is, in another order or precision."""


class Layer(NamedTuple):
    """A linear layer where the graph of a loss goes through it."""

    node: Node
    weight: Tensor


def find_layer(loss: Tensor, weight: Tensor | None = None) -> Layer | None:
    """The layer next to ``loss`` that has trainable weights of its own; or the one with these ``weight``.

    >>> head = torch.nn.Linear(2, 3)
    >>> layer = find_layer(head(torch.ones(4, 2)).square().mean())
    >>> layer.weight is head.weight
    True
    """
    for node in walk([loss]):
        if node.name() in _KINDS:
            found = _find_weight(node)
            if found is not None and (weight is None or found is weight):
                return Layer(node, found)
    return None


def measure_contrasts(losses: TaskLosses, tasks: Sequence[int]) -> Tensor | None:
    """<C_0, C_i> and |C_i|^2, [2, 1 + K], for the main task 0 and ``tasks``, which train its outputs; 0 for all others.

    ``None`` if the layer of a task is not found on some process or is larger than :data:`LARGEST`, if the rows of a
    task do not differ, or if it trains other outputs of the layer than the main task.
    """
    main = find_layer(losses[0])
    layers = [main, *(None if main is None else find_layer(losses[i], main.weight) for i in tasks)]
    usable = all(_is_usable(layer) for layer in layers)
    (everywhere,) = mean_of_numbers([torch.tensor(float(usable), device=losses[0].device)])
    if everywhere < 1:
        return None
    products, first = torch.zeros(2, len(losses), dtype=torch.float64), None
    for i, layer in zip([0, *tasks], layers, strict=True):
        contrast = None if layer is None else _contrast(losses[i], layer)
        first = contrast if first is None else first
        if contrast is None or first is None or not _overlap(first, contrast):
            return None
        products[:, i] = torch.stack([(first * contrast).sum(), contrast.square().sum()]).to(products)
    return products


def _contrast(loss: Tensor, layer: Layer) -> Tensor | None:
    """C of this ``loss``, [outputs, features], over the rows of all processes; ``None`` if it is rounding."""
    kind = _KINDS[layer.node.name()]
    with torch.autocast(loss.device.type, enabled=False):
        r, h = (_as_rows(part, kind.features) for part in gradient_at(loss, layer.node, kind.rows))
        mine = r.any(dim=1).to(h)  # other tasks may have rows in the same batch; their mean is not this task's
        gradient, outputs, features, n = mean_over_processes([r.T @ h, r.sum(0), mine @ h, mine.sum()])
        contrast: Tensor = gradient - torch.outer(outputs, features / n)
        return None if contrast.square().sum() <= ROUNDING * gradient.square().sum() else contrast


def _overlap(a: Tensor, b: Tensor) -> bool:
    """Whether two contrasts have an output in common."""
    return bool((a.any(dim=1) & b.any(dim=1)).any())


def _as_rows(part: Tensor, features: int) -> Tensor:
    """Rows of features, in at least float32; every place of an image is a row."""
    rows = part.detach().movedim(features, -1)
    return rows.reshape(-1, rows.shape[-1]).to(torch.promote_types(part.dtype, torch.float32))


def _find_weight(node: Node) -> Tensor | None:
    inputs = node.next_functions
    kind = _KINDS[node.name()]
    parent = inputs[kind.weight][0] if kind.weight < len(inputs) else None
    while parent is not None and parent.name() in _SAME_NUMBERS:
        parent = parent.next_functions[0][0]
    weight: Tensor | None = getattr(parent, "variable", None)
    return weight


def _is_usable(layer: Layer | None) -> bool:
    """Whether every row of z is the product of W with one row of h, and W is not too large."""
    if layer is None or layer.weight.numel() > LARGEST:
        return False
    node = layer.node
    return node.name() != "ConvolutionBackward0" or (
        node._saved_groups == 1
        and not any(node._saved_padding)
        and all(size == 1 for size in (*node._saved_stride, *layer.weight.shape[2:]))
    )
