"""Matches a saved state with the Reweighter that loads it: by the names of its parts, never by their order alone."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from arml.packing import State, unpack

OLD_PROGRESS = ("total", "updates", "average", "path", "settled")
"""The names of what format 1 knew about convergence, in its order."""
T = TypeVar("T", bound=tuple[Tensor, ...])


def read_state(saved: Tensor | State, tasks: Sequence[str], method: object, memory: tuple[Tensor, ...]) -> State:
    """A saved state of any format, checked, with its tasks in the order of ``tasks``."""
    state = _upgrade(unpack(saved) if isinstance(saved, Tensor) else saved, memory)
    _check_match(state, tasks, method, memory)
    order = state["tasks"]
    return state if order == list(tasks) else {name: _reorder(part, order, tasks) for name, part in state.items()}


def name_parts(memory: tuple[Tensor, ...]) -> dict[str, Tensor]:
    """The tensors of a named tuple by name."""
    return dict(zip(_part_names(memory), memory, strict=True))


def _shapes(memory: tuple[Tensor, ...]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(part.shape) for name, part in name_parts(memory).items()}


def _part_names(memory: tuple[Tensor, ...]) -> Sequence[str]:
    """The names of the tensors in ``memory``; numbers for a plain tuple."""
    names: Sequence[str] = getattr(memory, "_fields", [str(i) for i in range(len(memory))])
    return names


def fill(memory: T, saved: Mapping[str, Tensor]) -> T:
    """A tuple like ``memory`` with the tensors in ``saved`` in the places of the same name; others stay."""
    parts = [saved.get(name, part).to(part).clone() for name, part in name_parts(memory).items()]
    make: Callable[[Sequence[Tensor]], T] = getattr(type(memory), "_make", type(memory))
    return make(parts)


def fill_progress(progress: T, saved: Mapping[str, Tensor]) -> T:
    """What is known about convergence. After a change of the rule: only whether the weights have settled."""
    same_rule = _shapes(progress) == {name: tuple(part.shape) for name, part in saved.items()}
    return fill(progress, saved if same_rule else {name: part for name, part in saved.items() if name == "settled"})


def _upgrade(state: State, memory: tuple[Tensor, ...]) -> State:
    """A state of format 1, which named neither the parts of ``memory`` nor those of the progress, as format 2."""
    if not isinstance(state.get("memory"), list):
        return state
    parts, progress = state["memory"], state["progress"]
    # Parts that a method got later come last. If it lost some, the numbers match no name and are refused.
    names = _part_names(memory) if len(parts) <= len(memory) else [str(i) for i in range(len(parts))]
    return {
        **{name: part for name, part in state.items() if name != "progress"},
        "method_type": state["method"].partition("(")[0],
        "memory": dict(zip(names, parts, strict=False)),
        "convergence": dict(zip(OLD_PROGRESS, progress, strict=False)),
    }


def _check_match(state: State, tasks: Sequence[str], method: object, memory: tuple[Tensor, ...]) -> None:
    """Raises unless ``state`` belongs to the same tasks, in any order, and the same type of method."""
    if sorted(state["tasks"]) != sorted(tasks):
        raise ValueError(
            f"The checkpoint was made with the tasks {state['tasks']}, this Reweighter has {list(tasks)}. Make it "
            "with the same tasks, or leave its state out of what you load: the weights then start from the beginning."
        )
    if state["method_type"] != type(method).__qualname__:
        raise ValueError(
            f"The checkpoint was made with the method {state['method']}, this Reweighter has {method}. Settings may "
            f"change, the type may not: use {state['method_type']}, or leave the Reweighter's state out."
        )
    shapes, mine = {name: tuple(part.shape) for name, part in state["memory"].items()}, _shapes(memory)
    # A part that the method got in a later version is missing, and keeps its first value.
    if not shapes.items() <= mine.items():
        raise ValueError(
            f"The checkpoint holds the memory {shapes}, {type(method).__qualname__} needs {mine}. It was written by "
            "another version of this method: leave the Reweighter's state out of what you load, or use that version."
        )


def _reorder(node: Any, saved: Sequence[str], tasks: Sequence[str]) -> Any:
    """``node`` with all that was stored per task, in the order ``saved``, in the order ``tasks``.

    These are tensors whose last dimension is [1 + K], main task first, or [K]; and of square ones both dimensions.
    """
    if isinstance(node, Mapping):
        return {name: _reorder(part, saved, tasks) for name, part in node.items()}
    if isinstance(node, list):
        return [_reorder(part, saved, tasks) for part in node]
    if not isinstance(node, Tensor) or node.ndim == 0 or node.shape[-1] not in (len(tasks), 1 + len(tasks)):
        return node
    places = [saved.index(name) for name in tasks]
    index = torch.tensor(places if node.shape[-1] == len(tasks) else [0, *(1 + i for i in places)], device="cpu")
    node = node.cpu().index_select(-1, index)
    is_square = node.ndim > 1 and node.shape[-2] == node.shape[-1]
    return node.index_select(-2, index) if is_square else node
