"""From inner products to weights. Each paper has one file and one frozen dataclass of settings."""

from arml.methods._simplex import project_to_simplex
from arml.methods.adaloss import AdaLoss
from arml.methods.arml import ARML
from arml.methods.base import Method, Needs
from arml.methods.cosine_sim import CosineSim
from arml.methods.fixed import Fixed
from arml.methods.gated_arml import GatedARML
from arml.methods.gradnorm import GradNorm
from arml.methods.ol_aux import OLAUX
from arml.methods.recommended import recommended
from arml.methods.torchjd import TorchJD
from arml.methods.uniform import Uniform

__all__ = [
    "ARML",
    "OLAUX",
    "AdaLoss",
    "CosineSim",
    "Fixed",
    "GatedARML",
    "GradNorm",
    "Method",
    "Needs",
    "TorchJD",
    "Uniform",
    "project_to_simplex",
    "recommended",
]
