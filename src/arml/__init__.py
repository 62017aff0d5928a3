"""Learns the weights of auxiliary losses inside any training loop.

A training step travels down these stages. Each imports only from those above it:

- ``gradients``: losses -> inner products of task gradients
- ``schedule``: calls so far -> when to update next
- ``methods``: inner products -> weights, one paper, one file
- ``convergence``: weights -> whether they have settled
- ``fade``: steps so far -> how much the auxiliary part counts
- ``units``: sizes of losses, lengths of gradients -> comparable losses
- ``losses``: a user's losses -> checked, in one order
- ``reweighter``: the module a user holds
- ``langevin``: noise after the optimiser's step, for the two-stage algorithm
- ``sampling``: weights -> which source the next batch is drawn from

These need only torch and numpy. ``pip install arml[lab]`` adds what the other packages need: ``lab`` (data, networks,
learners, the training loop), ``report`` (records to tables), ``bench`` (costs), ``theory`` (worlds of known truth)
and ``cli`` (the command line).

A name is imported when it is first used (``public``), so that the command line answers at once: torch takes seconds.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arml.public import *  # noqa: F403 -- the list of names is there

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Imports a file, or the file that holds a public name, when it is first used."""
    if find_spec(f"{__name__}.{name}") is not None:
        return import_module(f"{__name__}.{name}")
    public = import_module(f"{__name__}.public")
    if name not in (*public.__all__, "__all__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(public, name)
    return globals()[name]


def __dir__() -> list[str]:
    """The public names, for completion in a shell."""
    return sorted({*globals(), *import_module("arml.public").__all__})
