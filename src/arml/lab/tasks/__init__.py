"""Tasks: network and images -> one scalar loss.

Every task but the main one leaves BatchNorm's running statistics alone.
"""

from arml.lab.tasks.classify import classify, classify_beside
from arml.lab.tasks.exemplar import distort, exemplar
from arml.lab.tasks.rotation import quarter_turns, rotation

__all__ = ["classify", "classify_beside", "distort", "exemplar", "quarter_turns", "rotation"]
