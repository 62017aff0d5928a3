"""Experiments around the core: three lines of Python train a run.

>>> from arml.lab import SemiSupervised, train_run
>>> outcome = train_run(SemiSupervised(labels=50, method="arml"), "runs")  # doctest: +SKIP
>>> outcome["test_error"], outcome["weights"]  # doctest: +SKIP

A line of data travels down the stages. Each imports only from those above it:

- ``data``: images and tables on disk or inside packages -> batches
- ``models``: a trunk that is shared, heads that are not
- ``tasks``: network + images -> one scalar loss
- ``worlds``: small problems in which it is known which auxiliary tasks help
- ``learners``: network + batch -> main loss and auxiliary losses
- ``metrics``: answers -> how good they are
- ``environment``: the machine, and where its data sets are
- ``catalogue``: what is known about every method and learner
- ``run``, ``run_kinds``: a run as plain data, and the run of each setting
- ``run_folder``, ``runs_root``, ``folder_lock``, ``checkpoint``, ``stopping``: what keeps a run safe
- ``trace``: the record of a run, one JSON line per recorded step
- ``train``: the loop, evaluation, checkpoints
- ``experiments``: which runs make a table or a figure
- ``settings``: the three settings by name
- ``build``: a run -> everything it trains with
- ``launch``: a run -> its result
- ``engines``: where runs are trained: this machine, or a Ray cluster
- ``sweep``: many runs side by side
- ``tuned``, ``tune``: settings for each line of a table, and the search for them
- ``suite``: one method in one world, for research
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arml.lab.launch import train_run
    from arml.lab.run_kinds import Domains, MultiLabel, SemiSupervised
    from arml.lab.sweep import run_all

__all__ = ["Domains", "MultiLabel", "SemiSupervised", "run_all", "train_run"]

_HOMES = {
    "Domains": "run_kinds",
    "MultiLabel": "run_kinds",
    "SemiSupervised": "run_kinds",
    "run_all": "sweep",
    "train_run": "launch",
}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used: reports read runs without loading what trains them."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
