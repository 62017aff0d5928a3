"""What a task wants for some features and not for others: its gradient on the outputs' layer, centred.

Letters as in :mod:`arml.gradients.rows`. The gradient on W is sum_n r_n h_n^T. At first its largest part is
(sum_n r_n) (mean h)^T, which raises or lowers outputs for all rows alike: every task levels the random first outputs, a
wrong one as much as a right one. The contrast is the rest:

    C = sum_n r_n (h_n - mean h)^T

Contrasts of two tasks that train the same layer have a positive product if they want alike outputs for alike features.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from arml._distributed import mean_over_processes
from arml.gradients.rows import Rows

ROUNDING = 1e-10
"""|C|^2 as a share of that of the gradient on W, below which it is rounding, as for a batch of one row."""


def measure_contrasts(rows: Mapping[int, Rows], num_losses: int) -> Tensor | None:
    """<C_0, C_i> and |C_i|^2, [2, 1 + K], for the tasks i in ``rows``; 0 for all others.

    ``None`` if the rows of a task do not differ, or if it trains other outputs of the layer than the main task.
    """
    products, first = torch.zeros(2, num_losses, dtype=torch.float64), None
    for i, own in rows.items():
        contrast = _contrast(own)
        first = contrast if first is None else first
        if contrast is None or first is None or not _overlap(first, contrast):
            return None
        products[:, i] = torch.stack([(first * contrast).sum(), contrast.square().sum()]).to(products)
    return products


def _contrast(rows: Rows) -> Tensor | None:
    """C, [outputs, features], over the rows of all processes; ``None`` if it is rounding."""
    h, r = rows.h, rows.r
    mine = r.any(dim=1).to(h)  # other tasks may have rows in the same batch; their mean is not this task's
    with torch.autocast(h.device.type, enabled=False):
        sums = [r.T @ h, r.sum(0), mine @ h, mine.sum()]
    gradient, outputs, features, n = mean_over_processes(sums)
    contrast: Tensor = gradient - torch.outer(outputs, features / n)
    return None if contrast.square().sum() <= ROUNDING * gradient.square().sum() else contrast


def _overlap(a: Tensor, b: Tensor) -> bool:
    """Whether two contrasts have an output in common."""
    return bool((a.any(dim=1) & b.any(dim=1)).any())
