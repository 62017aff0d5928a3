"""From inner products to weights. Each paper has one file and one frozen dataclass of settings."""

from arml.methods._simplex import project_to_simplex
from arml.methods.adaloss import AdaLoss
from arml.methods.agreement import Agreement
from arml.methods.arml import ARML
from arml.methods.auto_lambda import AutoLambda
from arml.methods.auxi_nash import AuxiNash
from arml.methods.base import Method, Needs
from arml.methods.cosine_sim import CosineSim
from arml.methods.doge import DoGE
from arml.methods.dwa import DWA
from arml.methods.exp3 import EXP3
from arml.methods.famo import FAMO
from arml.methods.fixed import Fixed
from arml.methods.gated_arml import GatedARML
from arml.methods.gradnorm import GradNorm
from arml.methods.metabalance import MetaBalance
from arml.methods.ol_aux import OLAUX
from arml.methods.pri_pcgrad import PriPCGrad
from arml.methods.recommended import recommended
from arml.methods.tawt import TAWT
from arml.methods.torchjd import TorchJD, TorchJDScalarizer
from arml.methods.uncertainty_weighting import UncertaintyWeighting
from arml.methods.uniform import Uniform
from arml.methods.weighted_cosine_sim import WeightedCosineSim

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
    "CosineSim",
    "DoGE",
    "Fixed",
    "GatedARML",
    "GradNorm",
    "MetaBalance",
    "Method",
    "Needs",
    "PriPCGrad",
    "TorchJD",
    "TorchJDScalarizer",
    "UncertaintyWeighting",
    "Uniform",
    "WeightedCosineSim",
    "project_to_simplex",
    "recommended",
]
