"""What an update sends, byte by byte, on real processes."""

import multiprocessing
import time
from functools import partial

import pytest
import torch
import torch.distributed as dist
from torch import nn

from arml.bench import processes
from arml.bench.expected_traffic import Traffic, expected_costs
from arml.bench.problems import FLASH, Kind
from arml.bench.processes import process_costs
from arml.bench.result import ProcessCost
from arml.gradients import one_by_one

TINY = Kind("tiny", partial(nn.Linear, 3, 3), num_features=3, example=(3,), batch=8, quick_batch=8)
"""P = 3 x 3 + 3 = 12. With K = 3 there are four heads of 3 x 2 + 2 parameters: H = 32."""
P, K, H = 12, 3, 32
ALONG = Traffic(3, 3 * 4 * 8 + 4 * 12 + (4 + 1) * 8)
"""Losses, presence and waiting of four tasks; the direction's gradient; four inner products and whether they failed."""
UPDATES = {
    "fixed weights": Traffic(0, 0),
    "double_backward": ALONG,
    "DualNumbers": ALONG,
    "CentralDifferences": ALONG,
    "one_by_one": ALONG,
    "pairwise": ALONG,
    "norms (GradNorm)": Traffic(5, 96 + 4 * 48),
    "Gram matrix": Traffic(2, 96 + 4 * 48),
}


@pytest.fixture(scope="module")
def on_two() -> list[ProcessCost]:
    return process_costs(TINY, K, batch=8, processes=2, repeats=3)


def sent_by_ddp(cost: ProcessCost) -> Traffic:
    return Traffic(cost.ddp_messages, cost.ddp_bytes)


def sent_by_update(cost: ProcessCost) -> Traffic:
    return Traffic(cost.update_messages, cost.update_bytes)


def test_every_byte_of_an_update_is_known(on_two):
    assert {cost.name: sent_by_update(cost) for cost in on_two} == UPDATES
    assert ALONG.bytes == 184


def test_ddp_sends_all_parameters_once_in_every_step(on_two):
    assert {sent_by_ddp(cost) for cost in on_two} == {Traffic(1, 4 * (12 + 32))}


def test_what_is_sent_is_what_is_expected(on_two):
    on_paper = {cost.name: cost for cost in expected_costs(P, K, num_head_parameters=H)}
    assert {cost.name: sent_by_update(cost) for cost in on_two} == {
        cost.name: on_paper[cost.name].update for cost in on_two
    }
    assert {cost.ddp_bytes for cost in on_two} == {cost.gradients for cost in on_paper.values()}


def test_every_engine_has_its_turns(on_two):
    slow = {"one_by_one", "pairwise", "norms (GradNorm)", "Gram matrix"}
    for cost in on_two:
        assert (cost.kind, cost.num_aux, cost.processes) == ("tiny", K, 2)
        assert cost.n + cost.refused == (1 if cost.name in slow else 3)
        assert 0 < cost.low <= cost.ms <= cost.high
        assert cost.ratio == pytest.approx(cost.ms / on_two[0].ms)


def test_one_process_sends_nothing_and_engines_that_do_not_work_are_left_out():
    costs = process_costs(FLASH, K, batch=2, processes=1, repeats=1)
    assert {sent_by_ddp(cost) for cost in costs} | {sent_by_update(cost) for cost in costs} == {Traffic(0, 0)}
    names = {cost.name for cost in costs}
    assert {"fixed weights", "one_by_one", "norms (GradNorm)"} <= names
    assert "double_backward" not in names  # flash attention has no second derivative


def test_failure_of_one_process_ends_all_and_gives_its_reason(tmp_path, monkeypatch):
    (tmp_path / "unlucky.py").write_text(
        "import torch.distributed as dist\nfrom torch import nn\n\n"
        "def trunk():\n"
        "    if dist.get_rank() == 1:\n        raise OSError('only on the second')\n"
        "    return nn.Linear(3, 3)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    from unlucky import trunk

    kind = Kind("unlucky", trunk, num_features=3, example=(3,), batch=8, quick_batch=8)
    with pytest.raises(RuntimeError, match=r"(?s)unlucky on 2 processes failed: Traceback.*only on the second"):
        process_costs(kind, K, batch=8, processes=2, repeats=1)
    assert multiprocessing.active_children() == []


def test_what_takes_too_long_is_ended():
    endless = Kind("endless", partial(time.sleep, 1000), num_features=3, example=(3,), batch=8, quick_batch=8)
    with pytest.raises(TimeoutError, match=r"longer than 0.5 s.*longer `timeout`"):
        process_costs(endless, K, batch=8, processes=2, repeats=1, timeout=0.5)
    assert multiprocessing.active_children() == []


def test_an_engine_that_refuses_some_turns_says_how_many(monkeypatch):
    refusals = iter([False, True, False, True, True])  # the first turn warms up

    def sometimes(losses, shared, directions, average):
        if next(refusals):
            raise RuntimeError("not on these losses")
        return one_by_one(losses, shared, directions, average)

    monkeypatch.setattr(processes, "double_backward", sometimes)
    costs = processes._measure(processes._Job(TINY, K, batch=8, processes=1, repeats=4, timeout=60))
    (cost,) = (cost for cost in costs if cost.name == "double_backward")
    assert (cost.n, cost.refused) == (1, 3)


def test_a_machine_without_ports_gets_an_error_that_says_so(monkeypatch):
    def refuse(*args, **kwargs):
        raise dist.DistNetworkError("not permitted")

    monkeypatch.setattr(processes, "TCPStore", refuse)
    with pytest.raises(RuntimeError, match=r"No port can be had on 127.0.0.1.*not permitted.*with one process"):
        process_costs(TINY, K, batch=8, processes=2, repeats=1)


def test_kinds_that_other_processes_cannot_import_are_refused():
    with pytest.raises(ValueError, match=r"'of a lambda' cannot be sent.*partial"):
        process_costs(Kind("of a lambda", lambda: nn.Linear(3, 3), 3, (3,), 8, 8), K, batch=8, processes=2, repeats=1)


@pytest.mark.parametrize("name", ["num_aux", "processes", "repeats"])
def test_numbers_below_one_are_refused(name):
    with pytest.raises(ValueError, match=f"`{name}` should be at least 1. Got 0"):
        process_costs(TINY, **{"num_aux": 3, "batch": 8, "processes": 2, "repeats": 1, name: 0})


def test_every_process_needs_an_example():
    with pytest.raises(ValueError, match=r"at least the number of processes, 2. Got 1"):
        process_costs(TINY, K, batch=1, processes=2, repeats=1)


@pytest.mark.parametrize("fails", [False, True])
def test_counting_leaves_torch_as_it_was(monkeypatch, fails):
    given = []
    monkeypatch.setattr(dist, "all_reduce", lambda tensor, *_: given.append(tensor.numel()))
    before = dist.all_reduce
    try:
        with processes._count_messages() as sent:
            dist.all_reduce(torch.zeros(3))
            dist.all_reduce(torch.zeros(2, dtype=torch.float64))
            assert not fails, "in the middle of a step"
    except AssertionError:
        assert fails
    assert sent == [12, 16]
    assert given == [3, 2]
    assert dist.all_reduce is before
