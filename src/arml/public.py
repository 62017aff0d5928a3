"""The public names of the library, each from the file it is in."""

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

_LATER = {"Recorder": "recorder", "SourceSampler": "sampling"}
"""Names that not every training needs, and the files that hold them."""


def __getattr__(name: str) -> Any:
    """Imports one of them when it is first used."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"arml.{_LATER[name]}"), name)
