"""Every contender that learns weights makes the same training step: that of a slow twin in float64."""

from copy import deepcopy

import pytest
import torch
from torch.testing import assert_close

from arml.bench import contenders as contenders_module
from arml.bench.contenders import DIFFERENCES, DUAL, FIXED, GRAPH, RECOMMENDED, contenders, sum_by_hand
from arml.bench.peers import torchjd_step
from arml.bench.problems import MLP, TRANSFORMER, Problem
from arml.methods import project_to_simplex

K = 4
LEARN_BY_ARML = {
    GRAPH: 1e-4,
    DUAL: 1e-4,
    DIFFERENCES: 5e-3,  # two plain passes: its error is about 1e-3
    "one_by_one": 1e-4,
    "squared norm (authors' release)": 1e-4,
    "one backward per task (LibMTL)": 1e-4,
}


def task_gradients(problem):
    """g_i of the trunk [1 + K, P], and those of every head, one ``backward()`` at a time, in float64."""
    twin = deepcopy(problem)
    twin.trunk.double(), twin.heads.double()
    twin.inputs = twin.inputs.double()
    trunk, heads = [], []
    for i in range(1 + len(problem.tasks)):
        twin.trunk.zero_grad(), twin.heads.zero_grad()
        twin.losses_of(twin.features())[i].backward()
        trunk.append(torch.cat([p.grad.flatten() for p in twin.trunk.parameters()]))
        heads.append(torch.cat([p.grad.flatten() for p in twin.heads[i].parameters()]))
    return torch.stack(trunk), torch.stack(heads)


def rate_that_shows(trunk):
    """beta for which the weights move by about a half."""
    r = trunk[0] - trunk[1:].sum(0)
    return 0.25 / float((trunk[1:] @ r).abs().max())


def arml_weights(trunk, rate):
    r = trunk[0] - trunk[1:].sum(0)
    alpha = project_to_simplex(1 + 2 * rate * (trunk[1:] @ r), total=float(len(trunk) - 1))
    return torch.cat([alpha.new_ones(1), alpha])


def gradients_left(problem):
    trunk = torch.cat([p.grad.flatten() for p in problem.trunk.parameters()]).double()
    heads = [torch.cat([p.grad.flatten() for p in head.parameters()]) for head in problem.heads]
    return trunk, torch.stack(heads).double()


@pytest.mark.parametrize("name", LEARN_BY_ARML)
@pytest.mark.parametrize("kind", [MLP, TRANSFORMER], ids=lambda kind: kind.name)
def test_all_contenders_train_with_the_weights_of_a_slow_twin(name, kind):
    problem = Problem(kind, K, batch=8)
    trunk, heads = task_gradients(problem)
    rate = rate_that_shows(trunk)
    w = arml_weights(trunk, rate)
    assert w[1:].max() - w[1:].min() > 0.2  # or any weights would do
    before = [p.detach().clone() for p in problem.trunk.parameters()]
    (contender,) = [one for one in contenders(rate) if one.name == name]
    contender.make(problem)()
    found_trunk, found_heads = gradients_left(problem)
    error = LEARN_BY_ARML[name]
    assert_close(found_trunk, w @ trunk, rtol=0, atol=error * float((w @ trunk).norm()))
    assert_close(found_heads, w[:, None] * heads, rtol=0, atol=error * float(heads.norm()))
    for p, start in zip(problem.trunk.parameters(), before, strict=True):
        assert_close(p.detach(), start - 1e-4 * p.grad)  # the step was taken
        assert p.requires_grad


@pytest.mark.parametrize("name", [FIXED, "weighted sum by hand"])
def test_fixed_weights_are_all_one(name):
    problem = Problem(MLP, K, batch=8)
    trunk, heads = task_gradients(problem)
    (contender,) = [one for one in contenders() if one.name == name]
    contender.make(problem)()
    found_trunk, found_heads = gradients_left(problem)
    assert_close(found_trunk, trunk.sum(0), rtol=0, atol=1e-5)
    assert_close(found_heads, heads, rtol=0, atol=1e-5)


@pytest.mark.parametrize("chunk", [None, 1])
def test_torchjd_takes_the_mean(chunk):
    problem = Problem(MLP, K, batch=8)
    trunk, heads = task_gradients(problem)
    torchjd_step(problem, chunk)()
    found_trunk, found_heads = gradients_left(problem)
    assert_close(found_trunk, trunk.mean(0), rtol=0, atol=1e-5)
    assert_close(found_heads, heads, rtol=0, atol=1e-5)


def test_weights_are_remembered_from_step_to_step():
    """After several steps of different contenders the networks are the same, since the weights are."""
    left = []
    for name in (GRAPH, "squared norm (authors' release)", "one backward per task (LibMTL)"):
        torch.manual_seed(0)
        problem = Problem(MLP, K, batch=8)
        rate = rate_that_shows(task_gradients(problem)[0])
        (contender,) = [one for one in contenders(rate) if one.name == name]
        step = contender.make(problem)
        for _ in range(3):
            step()
        left.append(gradients_left(problem)[0])
    assert_close(left[1], left[0], rtol=0, atol=1e-3 * float(left[0].norm()))
    assert_close(left[2], left[0], rtol=0, atol=1e-3 * float(left[0].norm()))


def test_without_torchjd_its_rows_are_left_out(monkeypatch):
    names = {one.name for one in contenders()}
    monkeypatch.setattr(contenders_module, "has_torchjd", lambda: False)
    assert {one.name for one in contenders()} == names - {"TorchJD mtl_backward", "TorchJD, chunks of 1"}


def test_the_sum_by_hand_is_a_sum():
    problem = Problem(MLP, 1, batch=2)
    sum_by_hand(problem)()
    assert gradients_left(problem)[0].abs().sum() > 0


def test_the_recommended_method_weights_by_relatedness_in_common_units():
    problem = Problem(MLP, K, batch=8)
    trunk, heads = task_gradients(problem)
    last = sum(p.numel() for p in list(problem.trunk.parameters())[-2:])  # weight and bias, at the end of each gradient
    lengths = trunk[:, -last:].norm(dim=1)
    units = lengths[0] / lengths[1:]
    products = units * (trunk[1:, -last:] @ trunk[0, -last:])
    rho = (4 + K * products.square() / products.square().sum()).sqrt()
    w = units * rho / rho.mean()
    (contender,) = [one for one in contenders() if one.name == RECOMMENDED]
    contender.make(problem)()
    found_trunk, found_heads = gradients_left(problem)
    assert_close(found_trunk, trunk[0] + w @ trunk[1:], rtol=0, atol=1e-4 * float(trunk.norm()))
    assert_close(found_heads[1:], w[:, None] * heads[1:], rtol=0, atol=1e-4 * float(heads.norm()))
