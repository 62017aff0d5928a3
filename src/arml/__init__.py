"""Auxiliary weights learned in anybody's training loop.

A training step travels down these stages, each of which imports only from those above it:

- ``gradients``: losses -> inner products of task gradients
- ``methods``: inner products -> weights, one paper, one file
- ``convergence``: weights -> whether they have settled
- ``schedule``: when they are updated next
- ``reweighter``: the module a user holds
- ``langevin``: noise after the optimiser's step, for the two-stage algorithm

These need torch and numpy only. With ``pip install arml[lab]`` come ``lab`` (data, networks, learners, the training
loop), ``report`` (records to tables) and ``cli`` (the command line).
"""

from arml.convergence import Convergence
from arml.gradients import EngineFallbackWarning, Signals, alignment, gram, norms, shared_parameters
from arml.langevin import Langevin
from arml.methods import (
    ARML,
    OLAUX,
    AdaLoss,
    CosineSim,
    Fixed,
    GatedARML,
    GradNorm,
    Method,
    Needs,
    TorchJD,
    Uniform,
    project_to_simplex,
)
from arml.reweighter import Reweighter
from arml.schedule import Growing

__version__ = "0.1.0"

__all__ = [
    "ARML",
    "OLAUX",
    "AdaLoss",
    "Convergence",
    "CosineSim",
    "EngineFallbackWarning",
    "Fixed",
    "GatedARML",
    "GradNorm",
    "Growing",
    "Langevin",
    "Method",
    "Needs",
    "Reweighter",
    "Signals",
    "TorchJD",
    "Uniform",
    "alignment",
    "gram",
    "norms",
    "project_to_simplex",
    "shared_parameters",
]
