"""The method for those who choose none."""

from typing import Any

from arml.methods.base import Method
from arml.methods.gated_arml import GatedARML


def recommended() -> Method[Any]:
    """The method that ``Reweighter(tasks=..., shared=...)`` uses."""
    return GatedARML()
