"""Features and wishes at the outputs' layer, against the rows they were made of."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from arml import Agreement, Reweighter
from arml.gradients import rows
from arml.gradients.rows import find_layer, measure_wanted, read_rows


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

    def expected(self):
        """h, r and z of every task; r = (softmax(z) - one-hot(y)) / N."""
        found = []
        for task, x in self.x.items():
            h = self.trunk(x).detach()
            z = self.head(h).detach()
            found.append((h, (z.softmax(1) - F.one_hot(self.y[task], 4)) / len(x), z))
        return found


@pytest.mark.parametrize("bias", [True, False])
def test_rows_are_those_of_the_layer(bias):
    net = Net(nn.Linear(5, 4, bias=bias))
    for own, expected in zip(read_rows(net.losses(), [1, 2]).values(), net.expected(), strict=True):
        assert_close(tuple(own), expected)


def test_tasks_that_share_one_pass_have_rows_of_their_own():
    """All rows go through the network together, and each loss wants something of its own ones."""
    net = Net()
    sizes = [len(x) for x in net.x.values()]
    outputs = net.head(net.trunk(torch.cat(list(net.x.values())))).split(sizes)
    together = [F.cross_entropy(z, net.y[task]) for z, task in zip(outputs, net.x, strict=True)]
    for own, expected in zip(read_rows(together, [1, 2]).values(), net.expected(), strict=True):
        mine = own.r.any(dim=1)
        assert_close(tuple(part[mine] for part in own), expected)


def test_every_place_of_an_image_is_a_row():
    net = Net(nn.Conv2d(5, 4, 1))
    images = [
        F.cross_entropy(net.head(net.trunk(x).T[None, :, :, None]), net.y[t][None, :, None]) for t, x in net.x.items()
    ]
    flat = Net(nn.Linear(5, 4))
    flat.load_state_dict({name: p.reshape(flat.state_dict()[name].shape) for name, p in net.state_dict().items()})
    for own, expected in zip(read_rows(images, [1, 2]).values(), flat.expected(), strict=True):
        assert_close(tuple(own), expected)


def test_words_of_a_sentence_are_rows():
    net = Net()
    words = [F.cross_entropy(net.head(net.trunk(x)[None]).transpose(1, 2), net.y[t][None]) for t, x in net.x.items()]
    for own, expected in zip(read_rows(words, [1, 2]).values(), net.expected(), strict=True):
        assert_close(tuple(own), expected)


def test_what_tasks_want_of_each_output():
    net = Net()
    expected = torch.stack([r.square().sum(0) for _, r, _ in net.expected()])
    assert_close(measure_wanted(read_rows(net.losses(), [1, 2])), expected)


def one_row(net):
    net.x, net.y = {t: x[:1] for t, x in net.x.items()}, {t: y[:1] for t, y in net.y.items()}
    return net.losses()


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
    net.trunk = net.head = nn.Identity()
    net.theta = nn.Parameter(torch.ones(2, dtype=torch.float64))
    return [(net.theta * (i + 1)).square().sum() for i, _ in enumerate(net.x)]


@pytest.mark.parametrize("case", [one_row, other_outputs, a_kernel, groups, no_layer])
def test_where_answers_cannot_be_compared_gradients_are(case):
    net = Net()
    main, *aux = case(net)
    shared = net.trunk if case is not no_layer else net
    reweighter = Reweighter(tasks=["a", "b"], shared=shared)
    assert isinstance(reweighter.method, Agreement)
    reweighter(main, dict(zip("ab", aux, strict=True)))
    assert reweighter.signals.transfer is None
    assert reweighter.signals.alignment is not None


def test_a_task_with_another_head_or_without_a_graph_has_no_rows():
    net = Net()
    other = nn.Linear(5, 4).double()
    assert read_rows([*net.losses()[:2], other(net.trunk(net.x["b"])).square().mean()], [1, 2]) is None
    assert read_rows([*net.losses()[:2], torch.zeros((), dtype=torch.float64)], [1, 2]) is None


def test_a_layer_that_is_too_large_is_left_alone(monkeypatch):
    monkeypatch.setattr(rows, "LARGEST", 19)
    assert read_rows(Net().losses(), [1, 2]) is None


def test_the_layer_is_found_under_autocast_and_behind_a_frozen_head():
    net = Net().float()
    x = net.x["main"].float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = F.cross_entropy(net.head(net.trunk(x)).float(), net.y["main"])
    assert find_layer(loss).weight is net.head.weight
    net.head.requires_grad_(False)
    assert find_layer(F.cross_entropy(net.head(net.trunk(x)), net.y["main"])).weight is net.trunk[0].weight


def test_rows_do_not_depend_on_the_precision_around_the_call():
    """Losses computed in float32, measured inside autocast, as in a loop that calls the Reweighter there."""
    net = Net().float()
    net.x = {task: x.float() for task, x in net.x.items()}
    losses = net.losses()
    expected = read_rows(losses, [1, 2])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = read_rows(losses, [1, 2])
    assert_close(found, expected, rtol=0, atol=0)


def test_reading_leaves_the_graph_and_the_network_as_they_are():
    net = Net()
    losses = net.losses()
    read_rows(losses, [1, 2])
    assert all(p.grad is None for p in net.parameters())
    sum(losses).backward()
    assert all(p.grad is not None for p in net.parameters())


@pytest.mark.parametrize("factor", [1.0, 1e-3, 1e4])
def test_the_recommended_method_closes_a_wrong_source_in_a_few_steps(factor):
    """One source has the right labels, one always the next class: after ten steps the second has nothing."""
    net = Net(rows=40)
    centres = 3 * torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for i, task in enumerate(net.x):
        net.x[task] = centres[net.y[task]] + torch.randn_like(net.x[task])
        net.y[task] = (net.y[task] + (i == 2)) % 4
    reweighter = Reweighter(tasks=["right", "wrong"], shared=net.trunk)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.003)
    for _ in range(10):
        main, right, wrong = net.losses()
        optimizer.zero_grad()
        reweighter(main, {"right": right, "wrong": factor * wrong}).backward()
        optimizer.step()
    assert reweighter.signals.transfer.shape == (2, 3)
    assert reweighter.weights["wrong"] == 0
    assert reweighter.weights["right"] > 0.5
