"""The formulas for networks that do not fit here, and the memory that they predict."""

from functools import partial

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

from arml import _distributed, alignment, gram, norms
from arml.bench.expected_traffic import ExpectedCost, Traffic, expected_costs
from arml.bench.timing import peak_bytes
from arml.gradients import CentralDifferences, DualNumbers, double_backward, one_by_one, pairwise

P, K, H = 12, 3, 32
"""Shared parameters, auxiliary tasks, parameters of the heads."""


def by_name(costs: list[ExpectedCost]) -> dict[str, ExpectedCost]:
    return {cost.name: cost for cost in costs}


def test_a_billion_parameters_and_two_hundred_tasks():
    rows = by_name(expected_costs(1_000_000_000, 200, every=10))
    graph, stored = rows["double_backward"], rows["every gradient stored (LibMTL, TorchJD)"]
    assert graph.gradients == 4_000_000_000
    assert graph.update == Traffic(3, 4_000_000_000 + 3 * 201 * 8 + 202 * 8)
    assert graph.run_traffic == pytest.approx(1.1)
    assert graph.run_time == pytest.approx(1 + (7 / 3 - 1) / 10)
    assert graph.memory == 8_000_000_000
    assert stored.memory == 804_000_000_000
    assert stored.run_time == pytest.approx((1 + 2 * 201) / 3)
    assert stored.run_traffic == pytest.approx(201)
    assert rows["Gram matrix"].update == Traffic(2, 804_000_000_000 + 4824)


def test_traffic_falls_with_the_number_of_steps_between_updates():
    for every in (1, 10, 100):
        dual = by_name(expected_costs(10**9, K, every=every))["DualNumbers"]
        assert dual.run_traffic == pytest.approx(1 + 1 / every)


def test_alone_nothing_is_sent_on_paper_either():
    rows = expected_costs(P, K, num_head_parameters=H, processes=1)
    assert {(row.gradients, row.update, row.run_traffic) for row in rows} == {(0, Traffic(0, 0), 1.0)}


@pytest.mark.parametrize("num_processes", [1, 2])
def test_an_update_takes_the_memory_that_is_expected(monkeypatch, num_processes):
    """In gradients, with activations too small to count; another process is made up, which sends what it gets."""
    monkeypatch.setattr(_distributed, "num_processes", lambda: num_processes)
    monkeypatch.setattr(dist, "all_reduce", lambda flat, group: flat.mul_(num_processes))
    trunk, heads = nn.Sequential(*(nn.Linear(64, 64) for _ in range(20))), [nn.Linear(64, 2) for _ in range(1 + K)]
    for layer in trunk:
        nn.init.orthogonal_(layer.weight)
    x, direction = torch.randn(1, 64), torch.tensor([[1.0, -1.0, -1.0, -1.0]])

    def losses():
        features = trunk(x)
        return torch.stack([cross_entropy(head(features), torch.tensor([0])) for head in heads])

    engines = {
        "double_backward": double_backward,
        "DualNumbers": DualNumbers(losses, trunk),
        "CentralDifferences": CentralDifferences(losses),
        "one_by_one": one_by_one,
        "pairwise": pairwise,
    }
    there = losses()
    updates = {name: partial(alignment, there, trunk, direction, engine=engine) for name, engine in engines.items()}
    updates |= {"norms (GradNorm)": partial(norms, there, trunk), "Gram matrix": partial(gram, there, trunk)}
    gradient = 4 * 20 * (64 * 64 + 64)
    on_paper = by_name(expected_costs(gradient // 4, K, processes=num_processes))
    found = {name: round(peak_bytes(update) / gradient, 1) for name, update in updates.items()}
    assert found == pytest.approx({name: on_paper[name].memory / gradient for name in updates}, abs=0.15)


def test_parameters_of_two_precisions_are_measured_on_several_processes_as_on_one(monkeypatch):
    """One message carries them all, and each comes back in its own precision."""
    trunk = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1).double())
    features = trunk[1](trunk[0](torch.ones(2, 3)).double())
    losses, direction = [k * features.square().mean() for k in range(1, 6)], torch.tensor([[1.0, -1, -1, -1, -1]])
    expected = alignment(losses, trunk, direction, engine=double_backward)
    monkeypatch.setattr(_distributed, "num_processes", lambda: 2)
    monkeypatch.setattr(dist, "all_reduce", lambda flat, group: flat.mul_(2))
    torch.testing.assert_close(alignment(losses, trunk, direction, engine=double_backward), expected, check_dtype=False)


@pytest.mark.parametrize("name", ["double_backward", "DualNumbers", "CentralDifferences", "one_by_one"])
def test_parameters_that_no_task_touches_take_no_memory(name):
    used, unused, heads = nn.Linear(4, 4), nn.Linear(1000, 1000), [nn.Linear(4, 2) for _ in range(1 + K)]
    trunk = nn.ModuleList([used, unused])

    def losses():
        return torch.stack([cross_entropy(head(used(torch.ones(1, 4))), torch.tensor([0])) for head in heads])

    engines = {
        "double_backward": double_backward,
        "DualNumbers": DualNumbers(losses, trunk),
        "CentralDifferences": CentralDifferences(losses),
        "one_by_one": one_by_one,
    }
    direction, there = torch.tensor([[1.0, -1.0, -1.0, -1.0]]), losses()
    assert peak_bytes(partial(alignment, there, trunk, direction, engine=engines[name])) < 4 * 1000 * 1000 / 10
