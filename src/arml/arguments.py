"""Checks what a Reweighter is made from."""

from collections.abc import Sequence
from typing import Any

import arml.methods as methods
from arml.fade import Fade
from arml.gradients.shared import Shared
from arml.methods.base import Method
from arml.methods.recommended import recommended


def check_given(tasks: Sequence[str] | None, shared: Shared | None) -> tuple[Sequence[str], Shared]:
    """The arguments that have no default, although they come after one that has; raises if one of them is missing."""
    if tasks is None or shared is None:
        missing = [f"`{name}`" for name, value in (("tasks", tasks), ("shared", shared)) if value is None]
        raise TypeError(
            f"A Reweighter needs {' and '.join(missing)}. Write "
            'Reweighter(tasks=["rotation"], shared=model.trunk), or name a method first, such as ARML().'
        )
    return tasks, shared


def choose_method(method: Method[Any] | None) -> Method[Any]:
    """The given method, or the recommended one for ``None``."""
    if method is None:
        return recommended()
    if isinstance(method, type):
        raise TypeError(f"Pass {method.__name__}(), not the class {method.__name__}: a method has settings.")
    if isinstance(method, str) and (known := _find_class(method)):
        raise TypeError(f"Pass the method {known}(), not its name: `from arml import {known}`. Got {method!r}.")
    if not callable(getattr(method, "init", None)):
        raise TypeError(
            f"`method` should be a method such as ARML(), or None for the recommended one. Got {method!r}. "
            "It is the first argument: without it, pass `tasks` and `shared` by name."
        )
    return method


def _find_class(name: str) -> str:
    """The class of a method that the command line calls ``name``; empty if there is none."""
    classes = {known.lower(): known for known in methods.__all__ if isinstance(getattr(methods, known), type)}
    return classes.get(name.lower().replace("_", ""), "")


def check_settings(aux_scale: float, fade: Fade | None, *, train_on_main: bool) -> None:
    """Raises unless ``aux_scale`` is positive, and something is left to train on at the end of a fade."""
    if not 0 < aux_scale < float("inf"):
        raise ValueError(f"`aux_scale` should be a positive number. Got {aux_scale!r}.")
    if fade is not None and not train_on_main:
        raise ValueError(
            "With train_on_main=False nothing is left to train on when the auxiliary part has faded out. "
            f"Got fade={fade!r}. Leave one of the two out."
        )
