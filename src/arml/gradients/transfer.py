"""Do the answers of a task, learned from its own rows, fit the rows of the main task?

Letters as in :mod:`arml.gradients.rows`. A ridge regression on the features of task k learns its answers y_k from the
rows of one batch, and answers the main task's rows. With features and answers centred, and X = H_k H_k^T,

    A = H_0 H_k^T (X + t I)^-1 Y_k,    p_k = <A, Y_0> / (|A| |Y_0|)

p_k is a correlation of answers with answers. No gradient is in it, so it says as much when the main labels are known by
heart as before. If the rows of A had nothing to do with those of Y_0, p_k would have mean 0 over all ways to pair them,
and the standard deviation

    nu_k = |A Y_0^T| / (sqrt(N - 1) |A| |Y_0|)

Answers are read from what a loss wants of the outputs: a classifier raises the output of the answer and lowers all
others. p is honest only for a task that the network has not been trained on: else features carry the answers.
"""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from arml._distributed import gather, num_processes
from arml.gradients.backward import TaskLosses
from arml.gradients.rows import Rows

RIDGE = 0.3
"""t, as a share of the mean of the diagonal of X."""
MOST_ROWS = 128
"""So many rows of a task are used; of more, as in an image with an answer per pixel, some at equal distances."""
SAME = 0.02
"""Numbers that should be equal may differ by this share, for rounding in low precision."""
ROUNDED = 1e-4
"""The gradient of an answer that lacks less than this to certainty may be rounding."""


class Transfer(NamedTuple):
    """How well tasks answer for the main one."""

    found: Tensor
    """p and nu, [2, 1 + K]; 0 for tasks that were not compared, because their answers or the main ones are alike."""
    alternatives: int
    """How many answers exclude each other: the classes; 2 where every output has an answer of its own."""


class Answers(NamedTuple):
    """Features and answers of some rows."""

    h: Tensor
    y: Tensor
    alternatives: int


def measure_transfer(losses: TaskLosses, rows: Mapping[int, Rows]) -> Transfer:
    """p and nu of the tasks in ``rows``, over the rows of all processes; the first one is the main task 0."""
    main, *others = _gather([read_answers(losses[i], own) for i, own in rows.items()])
    found = torch.zeros(2, len(losses), dtype=torch.float64)
    for i, task in zip(list(rows)[1:], others, strict=True):
        found[:, i] = torch.stack(correlate(task, main))
    return Transfer(found, main.alternatives)


def correlate(learned: Answers, tested: Answers) -> tuple[Tensor, Tensor]:
    """p and nu of a regression on ``learned`` that answers ``tested``; zeros if either has nothing to tell."""
    h, y, h_0, y_0 = (part - part.mean(0) for part in (learned.h, learned.y, tested.h, tested.y))
    x = h @ h.T
    t = RIDGE * x.diagonal().mean()
    if len(h_0) < 3 or not t > 0:
        return torch.zeros_like(t), torch.zeros_like(t)
    a = h_0 @ h.T @ torch.linalg.solve(x + t * torch.eye(len(x), dtype=x.dtype), y)
    a = a - a.mean(0)
    scale = a.norm() * y_0.norm()
    if not scale > 0:
        return torch.zeros_like(t), torch.zeros_like(t)
    return (a * y_0).sum() / scale, (a @ y_0.T).norm() / (scale * (len(a) - 1) ** 0.5)


def read_answers(loss: Tensor, rows: Rows) -> Answers:
    r"""The answers y that ``loss`` has for its rows, from r = dL / dz.

    - Classes: rows of r sum to 0, and r < 0 for the answer alone.
    - Yes or no for every output: r = w (sigmoid(z) - y), so r < 0 for yes.
    - All else is taken for a squared error: L = w sum e^2 and r = 2 w e give e = 2 L r / sum r^2, and y = z - e.

    >>> z = torch.tensor([[2.0, 0.0, -1.0], [0.0, 1.0, 0.0]], requires_grad=True)
    >>> loss = F.cross_entropy(z, torch.tensor([0, 2]))
    >>> loss.backward()
    >>> read_answers(loss, Rows(h=torch.eye(2), r=z.grad, z=z.detach())).y
    tensor([[1., 0., 0.],
            [0., 0., 1.]], dtype=torch.float64)
    """
    mine = rows.r.any(dim=1).nonzero().flatten()  # other tasks may have rows in the same batch
    most = max(1, MOST_ROWS // num_processes())
    chosen = mine if len(mine) <= most else mine[torch.linspace(0, len(mine) - 1, most, device=mine.device).long()]
    h, r, z = (part[chosen].cpu().double() for part in rows)
    if _is_softmax(r, z):
        # Where an answer is known by heart, its r is rounded to 0; it still is the least.
        wanted = (-r).clamp(min=0) + 1e-30 * F.one_hot(r.argmin(1), r.shape[1])
        return Answers(h, wanted / wanted.sum(1, keepdim=True), r.shape[1])
    yes = (r < 0).to(r)
    if _is_constant(r, z.sigmoid() - yes, yes):
        return Answers(h, yes, 2)
    size, squares = (part.detach().cpu().double() for part in (loss, rows.r.square().sum()))
    return Answers(h, z - 2 * size * r / squares.clamp(min=1e-300), 2)


def _is_softmax(r: Tensor, z: Tensor) -> bool:
    """Whether the answers are classes that exclude each other: rows of r sum to 0.

    Where an answer is known by heart, rounding spoils the sum: r = w (p - 1) is a difference of almost equal numbers.
    """
    if r.shape[1] < 2:
        return False
    sums_to_0 = r.sum(1).abs() <= SAME * r.abs().sum(1)
    by_heart = z.softmax(1).gather(1, r.argmin(1, keepdim=True)).squeeze(1) > 1 - ROUNDED
    return bool((sums_to_0 | by_heart).all())


def _is_constant(r: Tensor, expected: Tensor, yes: Tensor) -> bool:
    """Whether r is ``expected`` times a number, one for yes and one for no."""
    clear = r.abs() > 1e-3 * r.abs().max()  # the others are rounding
    for chosen in (clear & (yes > 0), clear & (yes == 0)):
        w = (r / expected)[chosen]
        if len(w) and not bool((w.max() - w.min()).abs() <= SAME * w.abs().max()):
            return False
    return True


def _gather(answers: list[Answers]) -> list[Answers]:
    """The rows of all processes."""
    if num_processes() == 1:
        return answers
    parts = zip(*gather(answers), strict=True)
    return [Answers(torch.cat([p.h for p in x]), torch.cat([p.y for p in x]), x[0].alternatives) for x in parts]
