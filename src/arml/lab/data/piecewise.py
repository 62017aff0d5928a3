"""Numbers of a table in pieces, so that a network can treat low, middle and high values differently."""

import torch
from torch import Tensor

MOST_INPUTS = 1000
"""A table with many columns has fewer pieces, or none, so that no more inputs than this are made."""
FEW_VALUES = 4
"""A column with no more distinct values than this needs no pieces."""


class PiecewiseLinear:
    r"""Adds columns that say how far a number has come in each of several pieces of its range.

    The edges :math:`e_0 < e_1 < ...` of the pieces are quantiles over the training rows. Piece i of a number x is

    .. math:: 2 \min\bigl(1, \max(0, (x - e_{i - 1}) / (e_i - e_{i - 1}))\bigr) - 1

    the encoding of Gorishniy et al., *On Embeddings for Numerical Features in Tabular Deep Learning*, NeurIPS 2022, in
    [-1, 1]. The columns themselves come first.

    >>> x = torch.tensor([[0.0], [1.0], [2.0], [4.0], [8.0]])
    >>> PiecewiseLinear(x, pieces=2)(torch.tensor([[1.0], [5.0]]))
    tensor([[ 1.,  0., -1.],
            [ 5.,  1.,  0.]])
    """

    def __init__(self, x: Tensor, pieces: int) -> None:
        """Takes the edges from the training rows ``x`` [N, F]; 0 pieces add nothing."""
        pieces = min(pieces, MOST_INPUTS // max(1, x.shape[1]) - 1)
        shares = torch.linspace(0, 1, pieces + 1, dtype=x.dtype) if pieces > 1 else torch.empty(0, dtype=x.dtype)
        self.edges: dict[int, Tensor] = {}
        for column, values in enumerate(x.T):
            if len(shares) and len(values.unique()) > FEW_VALUES:
                edges = torch.quantile(values, shares).unique()
                if len(edges) > 2:
                    self.edges[column] = edges

    def __call__(self, x: Tensor) -> Tensor:
        """Rows [N, F] -> [N, F + pieces]."""
        return torch.cat([x, *(_pieces(x[:, [column]], edges) for column, edges in self.edges.items())], dim=1)


def _pieces(x: Tensor, edges: Tensor) -> Tensor:
    return 2 * ((x - edges[:-1]) / (edges[1:] - edges[:-1])).clamp(0, 1) - 1
