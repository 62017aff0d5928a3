"""Ridge regressions of the answers of every task on its features, over the rows of many batches.

One batch says little about a hard task; what was seen before it counts, too, the less the longer ago, because features
change. Of the rows so far there remain n, their weighted number, the means of h and y, and

    X = sum (h - mean h) (h - mean h)^T,    Z = sum (h - mean h) (y - mean y)^T

which is all that a regression needs: it answers (h - mean h)^T (X + t I)^-1 Z.

What is saved has the same size for every network, so that a checkpoint has the same size at every step. A layer with
more than :data:`FEATURES` features or :data:`ANSWERS` answers does not fit in. There the last :data:`ROWS` rows are
kept as they are, and are not saved: after a resume they are collected anew. So is Z of tasks of which nothing else is
asked.
"""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

FEATURES, ANSWERS = 64, 32
"""What can be saved at most."""
ROWS = 256
"""Rows that are kept of a larger layer."""
MEMORY = 0.9
"""What a row counts after one more batch of its task."""
RIDGE = 0.3
"""t, as a share of the mean of (h - mean h)^2."""
_SIZES = (1, FEATURES, ANSWERS, FEATURES**2, FEATURES * ANSWERS)


class Moments(NamedTuple):
    """What is remembered of the rows of one task."""

    n: Tensor
    h: Tensor
    """Mean of h, [F]."""
    y: Tensor
    """Mean of y, [A]."""
    x: Tensor
    """X, [F, F]."""
    z: Tensor
    """Z, [F, A]."""

    def add(self, h: Tensor, y: Tensor) -> "Moments":
        """These and the rows ``h`` [N, F] with answers ``y`` [N, A]."""
        old, new = MEMORY * self.n, len(h)
        n, (h_mean, y_mean) = old + new, (h.mean(0), y.mean(0))
        dh, dy, between = h_mean - self.h, y_mean - self.y, old * new / n
        h, y = h - h_mean, y - y_mean
        return Moments(
            n,
            self.h + new / n * dh,
            self.y + new / n * dy,
            MEMORY * self.x + h.T @ h + between * torch.outer(dh, dh),
            MEMORY * self.z + h.T @ y + between * torch.outer(dh, dy),
        )

    def solve(self) -> Tensor | None:
        """(X + t I)^-1 Z, [F, A]; ``None`` if all features are alike."""
        t = RIDGE * self.x.trace() / self.n.clamp(min=1)
        return torch.linalg.solve(self.x + t * torch.eye(len(self.x)).to(self.x), self.z) if t > 0 else None


class Regressions:
    """One regression per auxiliary task."""

    def __init__(self, num_aux: int) -> None:
        self.remembered = torch.zeros(sum(_SIZES), num_aux, dtype=torch.float32, device="cpu")
        """[M, K]: the moments of every task, one after the other. Tasks come last, as in all that is saved."""
        self._kept: dict[int, tuple[Tensor, Tensor]] = {}
        """The last rows of tasks on a larger layer."""
        self._followed: dict[int, Tensor] = {}
        """Z of tasks on a larger layer that are not regressed."""

    def learn(self, task: int, h: Tensor, y: Tensor) -> Tensor | None:
        """Adds rows of the auxiliary task ``task``, and returns its regression, [F, A]; ``None`` if it has none.

        >>> h = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
        >>> Regressions(1).learn(0, h, h[:, :1]).shape
        torch.Size([2, 1])
        """
        if not _fits(h, y):
            old_h, old_y = self._kept.get(task, (h[:0], y[:0]))
            self._kept[task] = torch.cat([old_h, h])[-ROWS:], torch.cat([old_y, y])[-ROWS:]
            return regress(*self._kept[task])
        moments = self._moments(task).add(_fill(h, FEATURES), _fill(y, ANSWERS))
        column = torch.cat([part.reshape(-1) for part in moments]).to(self.remembered)
        if not bool(column.isfinite().all()):
            return None
        self.remembered[:, task] = column
        return self._solve(task, h, y)

    def covariance(self, task: int, h: Tensor, y: Tensor) -> Tensor | None:
        """Z of the rows of ``task`` so far, [F, A]; ``None`` before the first ones. ``h`` and ``y`` show the sizes.

        With a penalty t that outweighs X, a regression answers in proportion to (h - mean h)^T Z. It knows less than
        one with a small t, but it does not learn by heart single rows, which may come again.
        """
        if _fits(h, y):
            known = self.remembered[-FEATURES * ANSWERS :, task].view(FEATURES, ANSWERS)[: h.shape[1], : y.shape[1]]
        elif task in self._kept:
            known = _covariance(*self._kept[task])
        else:
            known = self._followed.get(task, h.new_zeros(0))
        return known.to(h) if bool(known.any()) else None

    def follow(self, task: int, h: Tensor, y: Tensor) -> None:
        """Adds rows of a task that is not regressed to its Z; they are centred by themselves.

        >>> regressions, h = Regressions(1), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> regressions.follow(0, h, h[:, :1])
        >>> regressions.covariance(0, h, h[:, :1])
        tensor([[ 0.5000],
                [-0.5000]])
        """
        before, new = self.covariance(task, h, y), _covariance(h, y)
        new = new if before is None else MEMORY * before + new
        if not bool(new.isfinite().all()):
            return
        if _fits(h, y):
            self.remembered[-FEATURES * ANSWERS :, task] = _fill(_fill(new, ANSWERS).T, FEATURES).T.reshape(-1)
        else:
            self._followed[task] = new

    def _solve(self, task: int, h: Tensor, y: Tensor) -> Tensor | None:
        b = self._moments(task).solve()
        return None if b is None else b[: h.shape[1], : y.shape[1]]

    def _moments(self, task: int) -> Moments:
        n, h, y, x, z = self.remembered[:, task].double().split(_SIZES)
        return Moments(n.squeeze(), h, y, x.view(FEATURES, FEATURES), z.view(FEATURES, ANSWERS))

    def state_dict(self) -> dict[str, Tensor]:
        """What :meth:`restore` needs."""
        return {"remembered": self.remembered}

    def restore(self, saved: Mapping[str, Tensor]) -> None:
        """Continues from what :meth:`state_dict` gave; from the beginning where that is missing."""
        found = saved.get("remembered")
        empty = torch.zeros_like(self.remembered)
        self._kept, self._followed = {}, {}
        self.remembered = empty if found is None or found.shape != empty.shape else found.to(empty).clone()


def regress(h: Tensor, y: Tensor) -> Tensor | None:
    """The regression on these rows alone, [F, A], by way of H H^T; ``None`` if all features are alike."""
    h, y = h - h.mean(0), y - y.mean(0)
    products = h @ h.T
    t = RIDGE * products.trace() / max(1, len(h))
    return h.T @ torch.linalg.solve(products + t * torch.eye(len(h)).to(h), y) if t > 0 else None


def _covariance(h: Tensor, y: Tensor) -> Tensor:
    """Z of these rows alone."""
    return (h - h.mean(0)).T @ (y - y.mean(0))


def _fits(h: Tensor, y: Tensor) -> bool:
    return h.shape[1] <= FEATURES and y.shape[1] <= ANSWERS


def _fill(rows: Tensor, size: int) -> Tensor:
    """Rows of ``size`` numbers, the last of them zeros."""
    return F.pad(rows, (0, size - rows.shape[1]))
