"""The rows at the layer before the losses: features that go in, and what every loss wants of the outputs.

Letters: the layer has outputs z_n = W h_n + b for the rows n of a batch, and r_n = dL / dz_n.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from arml._distributed import mean_of_numbers, num_processes
from arml.gradients.backward import TaskLosses, gradient_at, leads_to
from arml.gradients.graph import Node, walk

LARGEST = 2**22
"""Entries of the largest W that is looked at: what is measured there takes as much memory as W."""


class _Kind(NamedTuple):
    """An operation of autograd that multiplies rows by a matrix."""

    rows: str
    """Where it keeps the rows h."""
    weight: int
    """Which of its inputs is W."""
    bias: int | None
    """Which of its inputs is b."""
    features: int
    """The dimension of h and z that holds features and outputs."""


_KINDS = {
    "AddmmBackward0": _Kind("_saved_mat1", 2, 0, -1),
    "MmBackward0": _Kind("_saved_self", 1, None, -1),
    "LinearBackward0": _Kind("_saved_input", 1, 2, -1),
    "ConvolutionBackward0": _Kind("_saved_input", 1, 2, 1),
}
_SAME_NUMBERS = ("TBackward0", "TransposeBackward0", "PermuteBackward0", "ViewBackward0", "ToCopyBackward0")
"""Operations that leave a matrix what it is, in another order or precision."""


class Layer(NamedTuple):
    """A linear layer where the graph of a loss goes through it."""

    node: Node
    weight: Tensor
    bias: Tensor | None


class Rows(NamedTuple):
    """The rows of one task at its layer, in at least float32 and without graph."""

    h: Tensor
    """Features, [N, F]."""
    r: Tensor
    """The gradient of the loss on the outputs, [N, C]; 0 for rows of other tasks in the same batch."""
    z: Tensor
    """Outputs, [N, C]."""


def find_layer(loss: Tensor, weight: Tensor | None = None) -> Layer | None:
    """The layer next to ``loss`` that has trainable weights of its own; or the one with these ``weight``.

    >>> head = torch.nn.Linear(2, 3)
    >>> layer = find_layer(head(torch.ones(4, 2)).square().mean())
    >>> layer.weight is head.weight, layer.bias is head.bias
    (True, True)
    """
    return next((layer for layer in _find_layers(loss) if weight is None or layer.weight is weight), None)


def _find_layers(loss: Tensor) -> Iterator[Layer]:
    """The linear layers behind ``loss``, the nearest first."""
    for node in walk([loss]):
        if node.name() in _KINDS:
            kind = _KINDS[node.name()]
            found = _find_parameter(node, kind.weight)
            if found is not None:
                yield Layer(node, found, None if kind.bias is None else _find_parameter(node, kind.bias))


def read_rows(losses: TaskLosses, tasks: Sequence[int]) -> dict[int, Rows] | None:
    """The rows of the main task 0 and of ``tasks``, which train its outputs, on this process.

    ``None`` if the layer of a task is not found on some process, is not linear in single rows, or is larger than
    :data:`LARGEST`.
    """
    main = find_layer(losses[0])
    layers = [main, *(None if main is None else find_layer(losses[i], main.weight) for i in tasks)]
    usable = [layer for layer in layers if layer is not None and _is_usable(layer)]
    found = torch.tensor(float(len(usable) == len(layers)), device=losses[0].device)
    (everywhere,) = mean_of_numbers([found])
    if everywhere < 1:
        return None
    return {i: _read(losses[i], layer) for i, layer in zip([0, *tasks], usable, strict=True)}


def measure_wanted(rows: Mapping[int, Rows]) -> Tensor:
    """What every task wants of each output: the sum of r^2 over the rows of all processes, [tasks in ``rows``, C]."""
    (wanted,) = mean_of_numbers([torch.stack([own.r.double().square().sum(0) for own in rows.values()])])
    return num_processes() * wanted


def read_own_rows(losses: TaskLosses, tasks: Sequence[int], shared: Iterable[Tensor]) -> dict[int, Rows | None]:
    """The rows of ``tasks`` with heads of their own, on this process; ``None`` where it has no example of a task.

    A head is the layer next to the loss, unless it is ``shared``. Of a layer that answers for several tasks, the
    outputs of the task are taken. A task is left out if a process with examples of it finds no head.
    """
    trunk = {id(p) for p in shared}
    rows = {i: _read_head(losses[i], trunk) for i in tasks}
    fails = [part is None and losses[i].requires_grad for i, part in rows.items()]
    facts = ([part is not None for part in rows.values()], fails)
    there, failed = mean_of_numbers([torch.tensor(part, device=losses[0].device).float() for part in facts])
    usable = (there > 0) & (failed == 0)
    return {i: part for (i, part), ok in zip(rows.items(), usable.tolist(), strict=True) if ok}


def _read_head(loss: Tensor, trunk: set[int]) -> Rows | None:
    """The rows of all passes through the head of ``loss``; ``None`` if there is no such layer before the ``trunk``."""
    passes: list[Layer] = []
    for layer in _find_layers(loss):
        if id(layer.weight) in trunk:
            break
        # DistributedDataParallel may lead all outputs through one node: this may be the head of another task.
        is_head = layer.weight is passes[0].weight if passes else num_processes() == 1 or leads_to(loss, layer.node)
        if is_head and not _is_usable(layer):
            return None
        if is_head:
            passes.append(layer)
    rows = [_read(loss, layer) for layer in passes]
    return _take_outputs(Rows(*(torch.cat(parts) for parts in zip(*rows, strict=True)))) if rows else None


def _take_outputs(rows: Rows) -> Rows:
    """The outputs that the loss depends on."""
    mine = rows.r.any(dim=0)
    return rows if bool(mine.all()) else Rows(rows.h, rows.r[:, mine], rows.z[:, mine])


def _read(loss: Tensor, layer: Layer) -> Rows:
    kind = _KINDS[layer.node.name()]
    with torch.autocast(loss.device.type, enabled=False):
        r, h = (_as_rows(part, kind.features) for part in gradient_at(loss, layer.node, kind.rows))
        z = h @ layer.weight.detach().reshape(len(layer.weight), -1).T.to(h)
        return Rows(h, r, z if layer.bias is None else z + layer.bias.detach().to(h))


def _as_rows(part: Tensor, features: int) -> Tensor:
    """Rows of features, in at least float32; every place of an image is a row."""
    rows = part.detach().movedim(features, -1)
    return rows.reshape(-1, rows.shape[-1]).to(torch.promote_types(part.dtype, torch.float32))


def _find_parameter(node: Node, place: int) -> Tensor | None:
    """The parameter among the inputs of ``node``."""
    inputs = node.next_functions
    parent = inputs[place][0] if place < len(inputs) else None
    while parent is not None and parent.name() in _SAME_NUMBERS:
        parent = parent.next_functions[0][0]
    parameter: Tensor | None = getattr(parent, "variable", None)
    return parameter


def _is_usable(layer: Layer) -> bool:
    """Whether every row of z is the product of W with one row of h, and W is not too large."""
    if layer.weight.numel() > LARGEST:
        return False
    node = layer.node
    return node.name() != "ConvolutionBackward0" or (
        node._saved_groups == 1
        and not any(node._saved_padding)
        and all(size == 1 for size in (*node._saved_stride, *layer.weight.shape[2:]))
    )
