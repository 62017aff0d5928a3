"""Questions about the graph of losses that are answered without a backward pass."""

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import torch
from torch import Tensor

Node: TypeAlias = Any
"""A node of autograd's graph."""
CHECKPOINT = "CheckpointFunctionBackward"
"""The node that reentrant checkpointing leaves in place of everything it will recompute."""
DDP_SINK = "_DDPSinkBackward"
"""The node through which ``DistributedDataParallel(find_unused_parameters=True)`` leads all outputs, each by itself."""


def walk(losses: Iterable[Tensor]) -> Iterator[Node]:
    """Every node of the graph of ``losses``, once; those next to the losses first."""
    waiting: list[Node] = list(dict.fromkeys(loss.grad_fn for loss in losses if loss.grad_fn is not None))
    found: set[Node] = set(waiting)
    while waiting:
        yield from waiting
        parents = dict.fromkeys(parent for node in waiting for parent, _ in node.next_functions if parent is not None)
        waiting = [parent for parent in parents if parent not in found]
        found.update(waiting)


def parameters_behind(loss: Tensor) -> list[Tensor]:
    """The parameters that ``loss`` goes through, each once; other leaves if there are no parameters.

    Leaves that are no parameters, such as inputs of a gradient penalty, belong to the batch and not to the network.
    ``DistributedDataParallel`` may lead all outputs through one node; what belongs to other outputs is left out.

    >>> layer = torch.nn.Linear(2, 1)
    >>> loss = layer(torch.ones(3, 2, requires_grad=True)).mean()
    >>> sorted(tuple(p.shape) for p in parameters_behind(loss))
    [(1,), (1, 2)]
    """
    waiting: list[tuple[Node, int]] = [] if loss.grad_fn is None else [(loss.grad_fn, loss.output_nr)]
    found: set[tuple[Node, int]] = set(waiting)
    ends: dict[int, Tensor] = {}
    while waiting:
        node, output = waiting.pop()
        if hasattr(node, "variable"):
            ends[id(node.variable)] = node.variable
        edges = node.next_functions
        if node.name() == DDP_SINK:
            edges = edges[output : output + 1]
        new = [edge for edge in edges if edge[0] is not None and edge not in found]
        found.update(new)
        waiting += new
    return [leaf for leaf in ends.values() if isinstance(leaf, torch.nn.Parameter)] or list(ends.values())


def leaves(losses: Iterable[Tensor]) -> set[int]:
    """The ids of the tensors that a backward pass from ``losses`` would reach.

    >>> x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    >>> leaves([(2 * x).sum()]) == {id(x)}
    True
    """
    return {id(node.variable) for node in walk(losses) if hasattr(node, "variable")}


def has_node(losses: Iterable[Tensor], name: str) -> bool:
    """Whether a node of the graph is called ``name``."""
    return any(node.name() == name for node in walk(losses))


def uses_float16(losses: Iterable[Tensor]) -> bool:
    """Whether a gradient inside the graph is in float16, where numbers below 6e-8 are 0."""
    return any(part.dtype == torch.float16 for node in walk(losses) for part in node._input_metadata)
