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

These need only torch and numpy. ``pip install arml[lab]`` adds what the other packages need: ``lab`` (data, networks,
learners, the training loop), ``report`` (records to tables), ``bench`` (costs), ``theory`` (worlds of known truth) and
``cli`` (the command line).
"""

from arml.convergence import Convergence
from arml.fade import CosineFade, Fade, LinearFade, MainOnlyAtEnd
from arml.gradients import EngineFallbackWarning, Signals, alignment, gram, norms, shared_parameters
from arml.langevin import Langevin
from arml.methods import (
    ARML,
    DWA,
    FAMO,
    OLAUX,
    TAWT,
    AdaLoss,
    Agreement,
    AutoLambda,
    AuxiNash,
    CosineSim,
    Fixed,
    GatedARML,
    GradNorm,
    MetaBalance,
    Method,
    Needs,
    PriPCGrad,
    TorchJD,
    UncertaintyWeighting,
    Uniform,
    WeightedCosineSim,
    project_to_simplex,
)
from arml.reweighter import Reweighter
from arml.schedule import Growing

__version__ = "0.1.0"

__all__ = [
    "ARML",
    "DWA",
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
    "Reweighter",
    "Signals",
    "TorchJD",
    "UncertaintyWeighting",
    "Uniform",
    "WeightedCosineSim",
    "alignment",
    "gram",
    "norms",
    "project_to_simplex",
    "shared_parameters",
]
