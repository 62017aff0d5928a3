"""What looks at a Reweighter from outside: callables at every step, and bars for notebooks."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, TypeAlias

from torch import Tensor

Watch: TypeAlias = Callable[[Sequence[Tensor | None]], None]
"""Receives the losses of a training step, main task first; ``None`` where one is missing."""


class Watchers(list[Watch]):
    """The callables of one Reweighter. A copy of it, such as an average of networks, is not watched."""

    def __reduce__(self) -> tuple[type["Watchers"], tuple[()]]:
        return Watchers, ()


def html_bars(title: str, weights: Mapping[str, float]) -> str:
    """A table with one bar per weight, for notebooks.

    >>> html_bars("ARML()", {"<a>": 0.5}).count("width:100%")
    1
    """
    longest = max((*weights.values(), 1e-12))
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td style='width:14em'><div style='background:#4c78a8;height:1em;"
        f"width:{100 * max(weight, 0) / longest:.3g}%'></div></td><td>{weight:.3g}</td></tr>"
        for name, weight in weights.items()
    )
    return f"<table><caption>{escape(title)}</caption>{rows}</table>"


def draw_bars(weights: Mapping[str, float]) -> Any:
    """One bar per weight, an axis of matplotlib."""
    _, axis = import_pyplot().subplots(figsize=(5, 0.6 + 0.3 * len(weights)), layout="constrained")
    axis.barh(list(weights), list(weights.values()))
    axis.invert_yaxis()
    axis.set_xlabel("weight")
    return axis


def import_pyplot() -> Any:
    """matplotlib.pyplot; an error that says what to do if it is not installed."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("Plots need matplotlib. Install it with `pip install matplotlib`.") from error
    return pyplot
