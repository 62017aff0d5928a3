"""The ways to weigh auxiliary tasks that every setting compares."""

from arml.lab.run import MethodName

WEIGHTINGS: tuple[MethodName, ...] = (
    "uniform",
    "adaloss",
    "gradnorm",
    "cosine_sim",
    "ol_aux",
    "arml",
    "arml_full",
    "gated_arml",
)
"""Learned or fixed weights; arml_full is the two-stage algorithm with Langevin noise."""
GRID: tuple[MethodName, ...] = ("grid-0", "grid-0.5", "grid-1", "grid-1.5", "grid-2")
"""The grid search over two auxiliary tasks: weights of the first; the second has 2 minus that."""
