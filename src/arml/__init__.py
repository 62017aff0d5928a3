"""Learns the weights of auxiliary losses inside any training loop.

A training step travels down these stages. Each imports only from those above it:

- ``gradients``: losses -> inner products of task gradients
- ``schedule``: calls so far -> when to update next
- ``methods``: inner products -> weights, one paper, one file
- ``convergence``: weights -> whether they have settled
- ``fade``: steps so far -> how much the auxiliary part counts
- ``units``: sizes of losses -> comparable losses
- ``losses``: a user's losses -> checked, in one order
- ``reweighter``: the module a user holds
- ``langevin``: noise after the optimiser's step, for the two-stage algorithm
- ``sampling``: weights -> which source the next batch is drawn from

These need only torch and numpy. ``pip install arml[lab]`` adds what the other packages need: ``lab`` (data, networks,
learners, the training loop), ``report`` (records to tables), ``bench`` (costs), ``theory`` (worlds of known truth) and
``cli`` (the command line).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from arml.convergence import Convergence
from arml.fade import CosineFade, Fade, LinearFade, MainOnlyAtEnd
from arml.gradients import EngineFallbackWarning, Signals, alignment, gram, norms, shared_parameters
from arml.langevin import Langevin
from arml.methods import (
    ARML,
    DWA,
    EXP3,
    FAMO,
    OLAUX,
    TAWT,
    AdaLoss,
    Agreement,
    AutoLambda,
    AuxiNash,
    CosineSim,
    DoGE,
    Fixed,
    GatedARML,
    GradNorm,
    MetaBalance,
    Method,
    Needs,
    PriPCGrad,
    TorchJD,
    TorchJDScalarizer,
    UncertaintyWeighting,
    Uniform,
    WeightedCosineSim,
    project_to_simplex,
)
from arml.reweighter import Reweighter
from arml.schedule import Growing

if TYPE_CHECKING:
    from arml.recorder import Recorder
    from arml.sampling import SourceSampler

__version__ = "0.1.0"

__all__ = [
    "ARML",
    "DWA",
    "EXP3",
    "FAMO",
    "OLAUX",
    "TAWT",
    "AdaLoss",
    "Agreement",
    "AutoLambda",
    "AuxiNash",
    "Convergence",
    "CosineFade",
    "CosineSim",
    "DoGE",
    "EngineFallbackWarning",
    "Fade",
    "Fixed",
    "GatedARML",
    "GradNorm",
    "Growing",
    "Langevin",
    "LinearFade",
    "MainOnlyAtEnd",
    "MetaBalance",
    "Method",
    "Needs",
    "PriPCGrad",
    "Recorder",
    "Reweighter",
    "Signals",
    "SourceSampler",
    "TorchJD",
    "TorchJDScalarizer",
    "UncertaintyWeighting",
    "Uniform",
    "WeightedCosineSim",
    "alignment",
    "gram",
    "norms",
    "project_to_simplex",
    "shared_parameters",
]

_HOMES = {"Recorder": "recorder", "SourceSampler": "sampling"}


def __getattr__(name: str) -> Any:
    """Imports what not every training needs when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
