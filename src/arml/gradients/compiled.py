"""Compiled networks: whether their code allows the backward passes that an update needs, and what a loss trains."""

from collections.abc import Sequence
from weakref import WeakSet

import torch
from torch import Tensor

from arml.gradients.backward import TaskLosses, dot, task_gradient
from arml.gradients.graph import parameters_behind, walk

ONE_PASS = (
    "The compiled network allows one backward pass only, and an update of the weights needs more. Set "
    "torch._functorch.config.donated_buffer = False before the network is first called, and let the environment "
    "variable TORCHINDUCTOR_CACHE_DIR name an empty folder: code that was compiled earlier is used again otherwise."
)
_repeatable: WeakSet[type] = WeakSet()
"""Compiled graphs whose backward pass can be repeated."""


def check_compiled(losses: TaskLosses, shared: Sequence[Tensor]) -> None:
    """Raises if a compiled part of the graph allows one backward pass only. Each is checked once: it does not change.

    torch.compile makes a graph for every kind of input, such as a batch of another shape. It decides at the graph's
    first backward pass whether a second one is possible. Each has a node class of its own, by which it is known here.
    """
    found = _compiled_graphs(losses)
    if not found <= set(_repeatable):
        check_repeatable(losses, shared)
        _repeatable.update(found)


def check_repeatable(losses: TaskLosses, shared: Sequence[Tensor]) -> None:
    """Raises unless a second backward pass through the graph gives the same as the first."""
    total = torch.stack(list(losses)).sum()
    try:
        first, second = (task_gradient(total, shared) for _ in range(2))
    except RuntimeError as error:
        # torch refuses a second pass only where it knows; code from its cache on disk may give wrong numbers instead.
        if "donated" in str(error):
            raise ValueError(ONE_PASS) from error
        raise
    apart = [a - b for a, b in zip(first, second, strict=True)]
    if dot(apart, apart) > 1e-6 * dot(first, first):
        raise ValueError(ONE_PASS)


def trained_parameters(loss: Tensor) -> list[Tensor]:
    """The parameters that ``loss`` trains.

    A compiled network is one node of the graph, behind which all its parameters lie, the heads of other tasks too. Only
    a backward pass shows which of them have a gradient.
    """
    parameters = parameters_behind(loss)
    if not is_compiled(loss):
        return parameters
    check_compiled([loss], parameters)
    parts = task_gradient(loss, parameters)
    return [p for p, part in zip(parameters, parts, strict=True) if bool(part.any())]


def is_compiled(loss: Tensor) -> bool:
    """Whether a part of the graph of ``loss`` is compiled. Every backward pass to it goes through all of it."""
    return bool(_compiled_graphs([loss]))


def _compiled_graphs(losses: TaskLosses) -> set[type]:
    return {type(node) for node in walk(losses) if node.name().startswith("CompiledFunction")}
