"""Answers that fit the main examples, against closed forms and permutations."""

import itertools
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from arml.gradients.regression import RIDGE, Regressions
from arml.gradients.rows import Rows, read_own_rows, read_rows
from arml.gradients.transfer import (
    MOST_ROWS,
    Answers,
    associate,
    correlate,
    measure_own,
    measure_transfer,
    read_answers,
)


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def answers_of(loss, z):
    """What is read from the graph of ``loss`` at the outputs ``z``."""
    (r,) = torch.autograd.grad(loss, z)
    return read_answers(loss, Rows(torch.zeros(len(z), 1, dtype=z.dtype), r, z.detach()))


CLASSES = torch.tensor([0, 2, 1, 2, 0])
COIN = torch.tensor([[1.0, 0], [0, 1], [1, 1], [0, 0], [0, 1]])
LOSSES = {
    "classes": (F.cross_entropy, 3, CLASSES, F.one_hot(CLASSES), 3),
    "the sum over classes": (
        lambda z, y: 7 * F.cross_entropy(z, y, reduction="sum"),
        3,
        CLASSES,
        F.one_hot(CLASSES),
        3,
    ),
    "weighted classes": (
        lambda z, y: F.cross_entropy(z, y, weight=torch.tensor([1.0, 5.0, 0.2]).to(z)),
        3,
        CLASSES,
        F.one_hot(CLASSES),
        3,
    ),
    "yes or no": (F.binary_cross_entropy_with_logits, 2, COIN, COIN, 2),
    "a rare yes": (
        lambda z, y: F.binary_cross_entropy_with_logits(z, y, pos_weight=torch.tensor(9.0).to(z)),
        2,
        COIN,
        COIN,
        2,
    ),
    "numbers": (F.mse_loss, 2, draw(5, 2, seed=1), draw(5, 2, seed=1), 2),
    "numbers in other units": (lambda z, y: 1e-4 * F.mse_loss(z, y), 2, draw(5, 2, seed=1), draw(5, 2, seed=1), 2),
}


@pytest.mark.parametrize("case", LOSSES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("spread", [0.1, 3.0])
def test_answers_are_read_from_gradients(case, dtype, spread):
    measure, num_outputs, y, expected, alternatives = LOSSES[case]
    z = (spread * draw(5, num_outputs)).to(dtype).requires_grad_()
    found = answers_of(measure(z, y.to(dtype) if y.is_floating_point() else y), z)
    assert_close(found.y, expected.double(), rtol=1e-4, atol=1e-4)
    assert found.alternatives == alternatives


def test_answers_known_by_heart_are_read():
    """In float32 the gradient of the right class is exactly 0, and those of the others are not."""
    z = (60 * F.one_hot(CLASSES)).float().requires_grad_()
    with torch.no_grad():
        z += 30 * torch.rand(z.shape, generator=torch.Generator().manual_seed(0))
    loss = F.cross_entropy(z, CLASSES)
    assert not torch.autograd.grad(loss, z, retain_graph=True)[0].gather(1, CLASSES[:, None]).any()
    assert_close(answers_of(loss, z).y, F.one_hot(CLASSES).double())


@pytest.mark.parametrize("margin", [8, 14, 16, 17, 20, 30, 60])
def test_classes_are_recognised_however_sure_the_network_is(margin):
    """Rounding in float32 must not turn classes into numbers."""
    z = (margin * F.one_hot(CLASSES) + draw(5, 3)).float().requires_grad_()
    found = answers_of(F.cross_entropy(z, CLASSES), z)
    assert found.alternatives == 3
    assert_close(found.y, F.one_hot(CLASSES).double())


def test_rows_of_other_tasks_are_left_out():
    z = draw(5, 3).requires_grad_()
    found = answers_of(F.cross_entropy(z[:3], CLASSES[:3]), z)
    assert_close(found.y, F.one_hot(CLASSES[:3], 3).double())


def test_of_many_rows_some_are_used():
    y = torch.arange(1000) % 3
    z = draw(1000, 3).requires_grad_()
    found = answers_of(F.cross_entropy(z, y), z)
    assert len(found.y) == len(found.h) == MOST_ROWS
    assert found.y.sum(0).min() > MOST_ROWS / 4


def examples(n, seed, num_classes=3):
    y = torch.randint(num_classes, (n,), generator=torch.Generator().manual_seed(seed))
    h = 2 * draw(num_classes, 6, seed=99)[y] + draw(n, 6, seed=seed)
    return Answers(h, F.one_hot(y, num_classes).double(), num_classes)


def compare(task, main):
    """p and nu of a regression on ``task`` that answers ``main``."""
    return correlate(Regressions(1).learn(0, task.h, task.y), main)


def test_the_correlation_is_that_of_ridge_regression():
    from sklearn.linear_model import Ridge

    task, main = examples(20, 1), examples(12, 2)
    centred = task.h - task.h.mean(0)
    strength = RIDGE * float(centred.square().sum(1).mean())
    model = Ridge(alpha=strength).fit(centred, task.y)
    a = torch.from_numpy(model.predict((main.h - main.h.mean(0)).numpy()))
    a, y = a - a.mean(0), main.y - main.y.mean(0)
    p, _ = compare(task, main)
    assert_close(p, (a * y).sum() / (a.norm() * y.norm()), rtol=1e-5, atol=0)
    assert p > 0.5


def test_chance_is_the_standard_deviation_over_all_pairings():
    task, main = examples(20, 1), examples(6, 2)
    _, nu = compare(task, main)
    found = [
        float(compare(task, main._replace(y=main.y[list(order)]))[0]) for order in itertools.permutations(range(6))
    ]
    assert len(found) == math.factorial(6)
    assert sum(found) / len(found) == pytest.approx(0, abs=1e-9)
    assert float(nu) == pytest.approx(torch.tensor(found, dtype=torch.float64).std(correction=0).item(), rel=1e-9)


def test_wrong_answers_do_not_fit():
    task, main = examples(40, 1), examples(20, 2)
    p, nu = compare(task, main)
    assert p > 3 * nu
    wrong, nu = compare(task._replace(y=task.y.roll(1, dims=1)), main)
    assert wrong < -nu


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_neither_the_size_of_features_nor_their_mean_matters(factor):
    task, main = examples(20, 1), examples(12, 2)
    moved = task._replace(h=factor * (task.h + 5)), main._replace(h=factor * (main.h - 3))
    for found, expected in zip(compare(*moved), compare(task, main), strict=True):
        assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n", [1, 2])
def test_two_main_examples_prove_nothing(n):
    assert compare(examples(20, 1), examples(n, 2)) == (0, 0)


def test_alike_answers_or_features_prove_nothing():
    task, main = examples(20, 1), examples(12, 2)
    assert compare(task, main._replace(y=torch.ones_like(main.y))) == (0, 0)
    assert compare(task._replace(y=torch.ones_like(task.y)), main) == (0, 0)
    assert Regressions(1).learn(0, torch.ones_like(task.h), task.y) is None


def test_alike_main_examples_have_alike_answers():
    p, nu = associate(examples(20, 1))
    assert p > 3 * nu
    main = examples(20, 1)
    p, nu = associate(main._replace(y=main.y.roll(1, dims=0)))
    assert abs(p) < 3 * nu


def test_chance_of_the_main_task_is_the_standard_deviation_over_all_pairings():
    main = examples(6, 2)
    orders = [list(order) for order in itertools.permutations(range(6))]
    found = torch.stack([associate(main._replace(y=main.y[order]))[0] for order in orders])
    assert float(found.mean()) == pytest.approx(0, abs=1e-9)
    assert float(associate(main)[1]) == pytest.approx(float(found.std(correction=0)), rel=1e-9)


@pytest.mark.parametrize("n", [1, 4])
def test_four_main_examples_do_not_tell_how_alike_they_are(n):
    assert associate(examples(n, 2)) == (0, 0)


def test_one_main_example_per_answer_tells_nothing():
    main = examples(7, 2)
    assert associate(main._replace(y=torch.eye(7, dtype=torch.float64))) == (0, 0)


def test_main_examples_with_one_answer_or_one_feature_tell_nothing():
    main = examples(12, 2)
    assert associate(main._replace(y=torch.ones_like(main.y))) == (0, 0)
    assert associate(main._replace(h=torch.ones_like(main.h))) == (0, 0)


def test_transfer_through_a_network():
    """The right source fits the main examples, the one that calls every class the next one does not."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)).double()
    sets = [examples(20, 1), examples(40, 2), examples(40, 3)]
    sets[2] = sets[2]._replace(y=sets[2].y.roll(1, dims=1))
    losses = [F.cross_entropy(net(s.h), s.y.argmax(1)) for s in sets]
    regressions = Regressions(2)
    found, own, alternatives, _ = measure_transfer(losses, read_rows(losses, [1, 2]), regressions)
    assert own.tolist() == [0, 0, 0]
    assert alternatives.tolist() == [3, 3, 3]
    (_, right, wrong), (_, *chance) = found.tolist()
    assert right > 3 * chance[0]
    assert wrong < -chance[1]
    assert found[0, 0] > found[1, 0] > 0
    # Regressions on these batches answer the same ones well: the sources are easy.
    own = measure_transfer(losses, read_rows(losses, [1, 2]), regressions).own
    assert own[0] == 0
    assert own[1:].min() > 0.5
    sum(losses).backward()


def test_peers_answer_for_each_other():
    """Two right sources fit each other, a wrong one neither; each number as :func:`correlate` has it, both ways."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)).double()
    sets = [examples(20, 1), examples(40, 2), examples(30, 3), examples(40, 4)]
    sets[3] = sets[3]._replace(y=sets[3].y.roll(1, dims=1))
    losses = [F.cross_entropy(net(s.h), s.y.argmax(1)) for s in sets]
    rows = read_rows(losses, [1, 2, 3])
    p, nu = measure_transfer(losses, rows, Regressions(3)).peers
    answers = [read_answers(loss, rows[i]) for i, loss in enumerate(losses)][1:]
    slopes = [Regressions(1).learn(0, task.h, task.y) for task in answers]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        both = torch.stack([torch.stack(correlate(slopes[a], answers[b])) for a, b in ((i, j), (j, i))]).mean(0)
        assert_close(torch.stack([p[i, j], nu[i, j]]), both, rtol=1e-4, atol=1e-6)
    assert_close(p, p.T)
    assert p.diagonal().tolist() == nu.diagonal().tolist() == [0, 0, 0]
    assert p[0, 1] > 3 * nu[0, 1]
    assert max(p[0, 2], p[1, 2]) < 0


def test_a_task_alone_has_no_peers():
    net = nn.Linear(6, 3).double()
    sets = [examples(20, 1), examples(40, 2)]
    losses = [F.cross_entropy(net(s.h), s.y.argmax(1)) for s in sets]
    assert not measure_transfer(losses, read_rows(losses, [1]), Regressions(1)).peers.any()


def own_losses(*answers, features=None):
    """Losses of a main task and of tasks with heads of their own, one per tensor of ``answers``, on the same rows."""
    torch.manual_seed(0)
    features = torch.randn(40, 6, requires_grad=True) if features is None else features
    heads = [nn.Linear(6, 3) for _ in (None, *answers)]
    main = F.cross_entropy(heads[0](features), torch.arange(len(features)) % 3)
    return [main, *(F.cross_entropy(head(features), y) for head, y in zip(heads[1:], answers, strict=True))]


def test_own_answers_by_hand():
    """The correlation of (h - mean h)^T Z with the answers of rows that Z has not seen."""
    first, second = torch.randn(2, 40, 6, generator=torch.Generator().manual_seed(1)).requires_grad_().unbind()
    y = (first[:, 0] > 0).long() + (first[:, 1] > 0).long(), (second[:, 0] > 0).long() + (second[:, 1] > 0).long()
    regressions = Regressions(1)
    found = []
    for features, answers in zip((first, second), y, strict=True):
        losses = own_losses(answers, features=features)
        found.append(measure_own(losses, read_own_rows(losses, [1], []), regressions))
    h, t = (part.detach().double() - part.detach().double().mean(0) for part in (first, second))
    one_hot = [F.one_hot(part, 3).double() for part in y]
    z = h.T @ (one_hot[0] - one_hot[0].mean(0))
    a, b = (t @ z).flatten(), (one_hot[1] - one_hot[1].mean(0)).flatten()
    assert_close(found[0], torch.zeros(2, dtype=torch.float64))
    assert_close(found[1][1], a @ b / (a.norm() * b.norm()), rtol=1e-5, atol=1e-6)
    assert found[1][1] > 0.5


def test_heads_of_their_own_are_found():
    """A head per task, and one layer that answers for two tasks: each has its own outputs of it."""
    torch.manual_seed(0)
    trunk, head, pair = nn.Linear(5, 4), nn.Linear(4, 2), nn.Linear(4, 2)
    features = trunk(torch.randn(7, 5)).relu()
    yes = F.binary_cross_entropy_with_logits
    both = pair(features)
    answers = torch.tensor([0.0, 1, 1, 0, 1, 0, 0])
    losses = [
        yes(head(features)[:, 0], answers),
        yes(both[:, 0], answers),
        yes(both[:, 1], 1 - answers),
        (1 - F.cosine_similarity(features, features.detach().flip(0))).mean(),
    ]
    rows = read_own_rows(losses, [1, 2, 3], trunk.parameters())
    assert sorted(rows) == [1, 2], "the loss on features has no head"
    assert_close(rows[1].h, features.detach())
    for i, expected in ((1, answers), (2, 1 - answers)):
        assert_close(read_answers(losses[i], rows[i]).y[:, 0], expected.double())


def test_two_rows_tell_nothing():
    regressions = Regressions(1)
    for _ in range(3):
        losses = own_losses(torch.tensor([0, 1]), features=torch.randn(2, 6, requires_grad=True))
        assert not measure_own(losses, read_own_rows(losses, [1], []), regressions).any()
