"""Centred gradients on the outputs' layer, against loops over single rows."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from arml import Agreement, Reweighter
from arml.gradients import contrast, rows
from arml.gradients.rows import find_layer, read_rows


class Net(nn.Module):
    """A trunk and a head, in float64, with a batch of rows and labels for each task."""

    def __init__(self, head=None, tasks=("main", "a", "b"), rows=6):
        super().__init__()
        torch.manual_seed(0)
        self.trunk = nn.Sequential(nn.Linear(3, 5), nn.ReLU())
        self.head = head or nn.Linear(5, 4)
        self.double()
        self.x = {task: torch.randn(rows + i, 3, dtype=torch.float64) for i, task in enumerate(tasks)}
        self.y = {task: torch.randint(4, (len(x),)) for task, x in self.x.items()}

    def losses(self):
        return [F.cross_entropy(self.head(self.trunk(x)), self.y[task]) for task, x in self.x.items()]


def measure_contrasts(losses, tasks):
    found = read_rows(losses, tasks)
    return None if found is None else contrast.measure_contrasts(found, len(losses))


def row_by_row(features, head, y):
    """C = sum_n r_n (h_n - mean h)^T, one row at a time; r = (softmax(z) - one-hot(y)) / N."""
    mean = sum(features) / len(features)
    found = torch.zeros(4, 5, dtype=torch.float64)
    for h, label in zip(features, y, strict=True):
        r = head(h).softmax(0) - F.one_hot(label, 4)
        found += torch.outer(r, h - mean) / len(features)
    return found.detach()


def expected_products(contrasts):
    return torch.stack([torch.stack([(contrasts[0] * c).sum(), c.square().sum()]) for c in contrasts], dim=1)


@pytest.mark.parametrize("bias", [True, False])
def test_products_are_those_of_a_loop_over_rows(bias):
    net = Net(nn.Linear(5, 4, bias=bias))
    slow = [row_by_row(net.trunk(x), net.head, net.y[task]) for task, x in net.x.items()]
    assert_close(measure_contrasts(net.losses(), [1, 2]), expected_products(slow))


def test_tasks_that_share_one_pass_have_means_of_their_own():
    """All rows go through the network together, and each loss takes its own ones."""
    net = Net()
    sizes = [len(x) for x in net.x.values()]
    outputs = net.head(net.trunk(torch.cat(list(net.x.values())))).split(sizes)
    together = [F.cross_entropy(z, net.y[task]) for z, task in zip(outputs, net.x, strict=True)]
    assert_close(measure_contrasts(together, [1, 2]), measure_contrasts(net.losses(), [1, 2]))


def test_every_place_of_an_image_is_a_row():
    net = Net(nn.Conv2d(5, 4, 1))
    flat = Net(nn.Linear(5, 4))
    flat.load_state_dict({name: p.reshape(flat.state_dict()[name].shape) for name, p in net.state_dict().items()})
    images = [
        F.cross_entropy(net.head(net.trunk(x).T[None, :, :, None]), net.y[t][None, :, None]) for t, x in net.x.items()
    ]
    assert_close(measure_contrasts(images, [1, 2]), measure_contrasts(flat.losses(), [1, 2]))


def test_words_of_a_sentence_are_rows():
    net = Net()
    words = [F.cross_entropy(net.head(net.trunk(x)[None]).transpose(1, 2), net.y[t][None]) for t, x in net.x.items()]
    assert_close(measure_contrasts(words, [1, 2]), measure_contrasts(net.losses(), [1, 2]))


def test_tasks_that_are_not_asked_for_are_left_out():
    found = measure_contrasts(Net().losses(), [2])
    assert_close(found[:, 1], torch.zeros(2, dtype=torch.float64))
    assert bool(found[1, 2] > 0)


def test_what_levels_all_rows_alike_has_no_contrast():
    """The outputs of all rows should move by the same: a gradient on W, and nothing for some rows only."""
    net = Net()
    losses = [net.head(net.trunk(x)).sum() for x in net.x.values()]
    assert bool(torch.autograd.grad(losses[0], net.head.weight, retain_graph=True)[0].any())
    assert measure_contrasts(losses, [1, 2]) is None


def one_row(net):
    net.x, net.y = {t: x[:1] for t, x in net.x.items()}, {t: y[:1] for t, y in net.y.items()}
    return net.losses()


def another_head(net):
    other = nn.Linear(5, 4).double()
    return [*net.losses()[:2], other(net.trunk(net.x["b"])).square().mean()]


def other_outputs(net):
    """All targets of a table are columns of one layer."""
    return [net.head(net.trunk(x))[:, i].square().mean() for i, x in enumerate(net.x.values())]


def a_kernel(net):
    net.head = nn.Conv1d(5, 4, 3, padding=1).double()
    return [net.head(net.trunk(x).T[None]).square().mean() for x in net.x.values()]


def groups(net):
    net.head = nn.Conv1d(5, 5, 1, groups=5).double()
    return [net.head(net.trunk(x).T[None]).square().mean() for x in net.x.values()]


def no_layer(net):
    theta = nn.Parameter(torch.ones(2))
    return [(theta * (i + 1)).square().sum() for i, _ in enumerate(net.x)]


def a_missing_task(net):
    return [*net.losses()[:2], torch.zeros((), dtype=torch.float64)]


@pytest.mark.parametrize("case", [one_row, another_head, other_outputs, a_kernel, groups, no_layer, a_missing_task])
def test_where_contrasts_cannot_be_had_there_are_none(case):
    assert measure_contrasts(case(Net()), [1, 2]) is None


def test_a_layer_that_is_too_large_is_left_alone(monkeypatch):
    monkeypatch.setattr(rows, "LARGEST", 19)
    assert measure_contrasts(Net().losses(), [1, 2]) is None


def test_the_layer_is_found_under_autocast_and_behind_a_frozen_head():
    net = Net().float()
    x = net.x["main"].float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = F.cross_entropy(net.head(net.trunk(x)).float(), net.y["main"])
    assert find_layer(loss).weight is net.head.weight
    net.head.requires_grad_(False)
    assert find_layer(F.cross_entropy(net.head(net.trunk(x)), net.y["main"])).weight is net.trunk[0].weight


def test_products_do_not_depend_on_the_precision_around_the_call():
    """Losses computed in float32, measured inside autocast, as in a loop that calls the Reweighter there."""
    net = Net().float()
    net.x = {task: x.float() for task, x in net.x.items()}
    losses = net.losses()
    expected = measure_contrasts(losses, [1, 2])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = measure_contrasts(losses, [1, 2])
    assert_close(found, expected, rtol=0, atol=0)


def test_measuring_leaves_the_graph_and_the_network_as_they_are():
    net = Net()
    losses = net.losses()
    measure_contrasts(losses, [1, 2])
    assert all(p.grad is None for p in net.parameters())
    sum(losses).backward()
    assert all(p.grad is not None for p in net.parameters())


@pytest.mark.parametrize("factor", [1.0, 1e-3, 1e4])
def test_the_recommended_method_sees_them_and_closes_a_wrong_source_in_a_few_steps(factor):
    """One source has the right labels, one always the next class: after ten steps the second has nothing."""
    torch.manual_seed(0)
    centres = 3 * torch.randn(4, 3, dtype=torch.float64)
    net = Net(rows=40)
    for i, task in enumerate(net.x):
        net.x[task] = centres[net.y[task]] + torch.randn_like(net.x[task])
        net.y[task] = (net.y[task] + (i == 2)) % 4
    reweighter = Reweighter(tasks=["right", "wrong"], shared=net.trunk)
    assert isinstance(reweighter.method, Agreement)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.003)
    for _ in range(10):
        main, right, wrong = net.losses()
        optimizer.zero_grad()
        reweighter(main, {"right": right, "wrong": factor * wrong}).backward()
        optimizer.step()
    assert reweighter.signals.contrasts.shape == reweighter.signals.transfer.shape == (2, 3)
    assert reweighter.weights["wrong"] == 0
    assert reweighter.weights["right"] > 0.5
