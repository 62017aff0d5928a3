"""From losses to inner products of task gradients.

- ``shared``: which parameters the tasks share, by name or by object
- ``second``: makes the second backward pass cheaper
- ``backward``: inner products from the graph of the losses (the only file that calls ``autograd.grad``)
- ``forward``: the same by recomputing the losses along a direction, with a closure
- ``compiled``: whether compiled networks allow the backward passes of an update
- ``audit``: compares an engine's products with the graph, for every task
- ``auto``: chooses between these engines, and replaces one that fails
- ``rows``, ``regression``, ``transfer``: what losses want of outputs that they share, and whether their answers fit
- ``measure``: the functions that others call
- ``signals``: what a method learns about a training step
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
