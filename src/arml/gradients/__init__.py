"""Losses to inner products of task gradients.

- ``shared``: which parameters the tasks share, by name or by object
- ``backward``: inner products from the graph of the losses (the only file that calls ``autograd.grad``)
- ``forward``: the same by recomputing the losses along a direction, for those who can pass a closure
- ``auto``: which of these to use, and what to do where one does not work
- ``measure``: the functions others call
- ``signals``: what a training step shows a method
"""

from arml.gradients.auto import Auto, EngineFallbackWarning
from arml.gradients.backward import Engine, double_backward, one_by_one, pairwise
from arml.gradients.forward import CentralDifferences, DualNumbers
from arml.gradients.measure import alignment, gram, norms
from arml.gradients.shared import Shared, shared_parameters
from arml.gradients.signals import Signals

__all__ = [
    "Auto",
    "CentralDifferences",
    "DualNumbers",
    "Engine",
    "EngineFallbackWarning",
    "Shared",
    "Signals",
    "alignment",
    "double_backward",
    "gram",
    "norms",
    "one_by_one",
    "pairwise",
    "shared_parameters",
]
