"""Do the answers of a task, learned from its own rows, fit the rows of the main task?

Letters as in :mod:`arml.gradients.rows`. A ridge regression B on the features of task k learns its answers y_k from its
rows so far (:mod:`arml.gradients.regression`), and answers the main task's rows. With features and answers centred,

    A = H_0 B,    p_k = <A, Y_0> / (|A| |Y_0|)

p_k is a correlation of answers with answers. No gradient is in it, so it says as much when the main labels are known by
heart as before. If the rows of A had nothing to do with those of Y_0, p_k would have mean 0 over all ways to pair them,
and the standard deviation

    nu_k = |A Y_0^T| / (sqrt(N - 1) |A| |Y_0|)

Answers are read from what a loss wants of the outputs: a classifier raises the output of the answer and lowers all
others. p is honest only for a task that the network has not been trained on: else features carry the answers.

The same regressions answer the rows of the other tasks, which have many labels: two tasks with the same answers fit
each other, even where few main labels cannot tell, and whether they are trained on or not. And the same question about
the main task itself: do alike rows have alike answers? See :func:`associate`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from arml._distributed import gather, num_processes
from arml.gradients.backward import TaskLosses
from arml.gradients.regression import Regressions
from arml.gradients.rows import Rows

MOST_ROWS = 128
"""So many rows of a task are used; of more, as in an image with an answer per pixel, some at equal distances."""
SAME = 0.02
"""Numbers that should be equal may differ by this share, for rounding in low precision."""
ROUNDED = 1e-4
"""The gradient of an answer that lacks less than this to certainty may be rounding."""


class Transfer(NamedTuple):
    """How well tasks answer for the main one."""

    found: Tensor
    """p and nu, [2, 1 + K]; 0 for tasks that were not compared, because their answers or the main ones are alike.

    Those of the main task say how far alike rows have alike answers.
    """
    own: Tensor
    """[1 + K]: p of the regressions before this batch, which answer the rows of their own tasks in it."""
    alternatives: Tensor
    """[1 + K]: how many answers exclude each other: the classes; 2 where every output has an answer of its own."""
    peers: Tensor
    """[2, K, K], symmetric: p and nu of the regressions of two tasks on each other's rows; 0 where not compared."""


class Answers(NamedTuple):
    """Features and answers of some rows."""

    h: Tensor
    y: Tensor
    alternatives: int


def measure_transfer(losses: TaskLosses, rows: Mapping[int, Rows], regressions: Regressions) -> Transfer:
    """p and nu of the tasks in ``rows``, over the rows of all processes; the first one is the main task 0.

    ``regressions`` learn the rows of all others.
    """
    main, *others = _gather([read_answers(losses[i], own) for i, own in rows.items()])
    found = torch.zeros(2, len(losses), dtype=torch.float64)
    found[:, 0] = torch.stack(associate(main))
    own = torch.zeros(len(losses), dtype=torch.float64)
    alternatives = torch.full((len(losses),), 2)
    alternatives[0] = main.alternatives
    learned: dict[int, Tensor] = {}
    tasks = dict(zip(list(rows)[1:], others, strict=True))
    for i, task in tasks.items():
        alternatives[i] = task.alternatives
        own[i] = _answer_own(regressions, i, task)
        b = regressions.learn(i - 1, task.h, task.y)
        if b is not None:
            learned[i] = b
            found[:, i] = torch.stack(correlate(b, main))
    return Transfer(found, own, alternatives, _compare_peers(learned, tasks, len(losses) - 1))


def _compare_peers(learned: Mapping[int, Tensor], tasks: Mapping[int, Answers], num_aux: int) -> Tensor:
    """p and nu of every regression in ``learned`` on the rows of every other task, both directions averaged."""
    found = torch.zeros(2, num_aux, num_aux, dtype=torch.float64)
    if len(learned) > 1:
        places = torch.tensor([i - 1 for i in learned])
        b = torch.stack(list(learned.values()), dim=1)  # [F, J, A]
        for i in learned:
            found[:, places, i - 1] = torch.stack(_correlate_each(b, tasks[i]))
    both = (found + found.transpose(1, 2)) / 2
    return both - both.diagonal(dim1=1, dim2=2).diag_embed()


def _correlate_each(b: Tensor, tested: Answers) -> tuple[Tensor, Tensor]:
    """p and nu, [J] each, of J regressions ``b`` [F, J, A] as by :func:`correlate`."""
    y, a = _centre(tested.y), torch.einsum("nf,fja->nja", _centre(tested.h), b)
    scale = a.square().sum((0, 2)).sqrt() * y.norm()
    known = scale > 0 if len(y) >= 3 else torch.zeros_like(scale, dtype=torch.bool)
    scale = torch.where(known, scale, 1.0)
    squares = (torch.einsum("nja,njb->jab", a, a) * (y.T @ y)).sum((1, 2)).clamp(min=0)
    p, nu = torch.einsum("nja,na->j", a, y) / scale, squares.sqrt() / (scale * max(1, len(y) - 1) ** 0.5)
    return torch.where(known, p, 0.0), torch.where(known, nu, 0.0)


def measure_own(losses: TaskLosses, rows: Mapping[int, Rows | None], regressions: Regressions) -> Tensor:
    """[1 + K]: p of what is known of the tasks in ``rows`` on their own next rows, which are learned then.

    The rows are those of all processes. 0 for all other tasks, and for those that have nothing to tell.
    """
    own = torch.zeros(len(losses), dtype=torch.float64)
    answers = [None if part is None else read_answers(losses[i], part) for i, part in rows.items()]
    for i, task in zip(rows, _gather(answers), strict=True):
        own[i] = _answer_own(regressions, i, task)
        regressions.follow(i - 1, task.h, task.y)
    return own


def _answer_own(regressions: Regressions, i: int, task: Answers) -> Tensor:
    """p of what is known of task ``i`` on rows of its own that it has not learned yet; 0 if it knows nothing."""
    z = regressions.covariance(i - 1, task.h, task.y)
    p, _ = _nothing(task.y) if z is None else correlate(z, task)
    return p


def correlate(b: Tensor, tested: Answers) -> tuple[Tensor, Tensor]:
    """p and nu of a regression ``b`` [F, A] that answers ``tested``; zeros if either has nothing to tell."""
    y, a = _centre(tested.y), _centre(tested.h) @ b
    scale = a.norm() * y.norm()
    if len(a) < 3 or not scale > 0:
        return _nothing(y)
    return (a * y).sum() / scale, (a @ y.T).norm() / (scale * (len(a) - 1) ** 0.5)


def associate(tested: Answers) -> tuple[Tensor, Tensor]:
    """p and nu of a task by itself: whether rows with alike features have alike answers, and what chance would bring.

    With S_nm = exp(-|h_n - h_m| / d), d the median distance, and L = Y Y^T for centred Y, both without diagonals,

        p = (<S, L> - E) / (|S| |L|)

    E is the mean of <S, L> over all ways to pair features with answers, and nu the standard deviation of p over them:
    the moments of Mantel's test (1967). Zeros for fewer than five rows.
    """
    h, y, n = tested.h, _centre(tested.y), len(tested.h)
    distances = (h[:, None] - h).norm(dim=2)
    d = distances.median()
    if n < 5 or not d > 0:
        return _nothing(y)
    s, pairs = _without_diagonal(torch.exp(-distances / d)), _without_diagonal(y @ y.T)
    scale = s.norm() * pairs.norm()
    if not scale > 0:
        return _nothing(y)
    mean = s.sum() * pairs.sum() / (n * (n - 1))
    p, nu = ((s * pairs).sum() - mean) / scale, (_mean_square(s, pairs) - mean.square()).clamp(min=0).sqrt() / scale
    return (p, nu) if nu > ROUNDED else _nothing(y)  # all pairs are alike where every answer has one row


def _mean_square(s: Tensor, pairs: Tensor) -> Tensor:
    """The mean of <S, L>^2 over all orders of the rows and columns of L, for symmetric matrices without diagonals."""
    n = len(s)
    (a1, a2, a3), (b1, b2, b3) = ((m.sum().square(), m.square().sum(), m.sum(0).square().sum()) for m in (s, pairs))
    same = 2 * a2 * b2 / (n * (n - 1))
    one_in_common = 4 * (a3 - a2) * (b3 - b2) / (n * (n - 1) * (n - 2))
    none = (a1 - 4 * a3 + 2 * a2) * (b1 - 4 * b3 + 2 * b2) / (n * (n - 1) * (n - 2) * (n - 3))
    return same + one_in_common + none


def _centre(rows: Tensor) -> Tensor:
    return rows - rows.mean(0)


def _without_diagonal(matrix: Tensor) -> Tensor:
    return matrix - matrix.diag().diag()


def _nothing(like: Tensor) -> tuple[Tensor, Tensor]:
    return like.new_zeros(()), like.new_zeros(())


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


def _gather(answers: Sequence[Answers | None]) -> list[Answers]:
    """The rows of all processes; ``None`` on a process without rows of a task."""
    processes = [answers] if num_processes() == 1 else gather(answers)
    tasks = [[part for part in parts if part is not None] for parts in zip(*processes, strict=True)]
    return [Answers(torch.cat([p.h for p in x]), torch.cat([p.y for p in x]), x[0].alternatives) for x in tasks]
