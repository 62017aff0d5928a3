"""What an update sends, byte by byte, on real processes; and the formulas for networks that do not fit here."""

import multiprocessing
import time
from dataclasses import replace
from functools import partial

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

from arml import _distributed, alignment, gram, norms
from arml.bench import processes
from arml.bench.expected_traffic import Expected, Traffic, expected
from arml.bench.problems import FLASH, Kind, Problem
from arml.bench.process_tables import expected_sheet, processes_sheet
from arml.bench.processes import Row, measured
from arml.bench.result import OnProcesses, Result
from arml.bench.timing import peak_bytes
from arml.gradients import CentralDifferences, DualNumbers, double_backward, one_by_one, pairwise

pytestmark = pytest.mark.xdist_group("processes")  # several starts at once would wait for each other

TINY = Kind("tiny", partial(nn.Linear, 3, 3), num_features=3, example=(3,), batch=8, quick_batch=8)
"""P = 3 x 3 + 3 = 12. With K = 3 there are four heads of 3 x 2 + 2 parameters: H = 32."""
P, K, H = 12, 3, 32
ALONG = Traffic(3, 2 * 4 * 8 + 4 * 12 + (4 + 1) * 8)
"""Losses and presence of four tasks; the gradient of the direction; four inner products and whether they failed."""
UPDATES = {
    "fixed weights": Traffic(0, 0),
    "double_backward": ALONG,
    "DualNumbers": ALONG,
    "CentralDifferences": ALONG,
    "one_by_one": ALONG,
    "pairwise": ALONG,
    "norms (GradNorm)": Traffic(5, 64 + 4 * 48),
    "Gram matrix": Traffic(2, 64 + 4 * 48),
}


@pytest.fixture(scope="module")
def on_two() -> list[Row]:
    return measured(TINY, K, batch=8, processes=2, repeats=3)


def by_way(rows: list[Expected]) -> dict[str, Expected]:
    return {row.way: row for row in rows}


def test_every_byte_of_an_update_is_known(on_two):
    assert {row.way: row.update for row in on_two} == UPDATES
    assert ALONG.bytes == 152


def test_ddp_sends_all_parameters_once_in_every_step(on_two):
    assert {row.gradients for row in on_two} == {Traffic(1, 4 * (12 + 32))}


def test_what_is_sent_is_what_is_expected(on_two):
    on_paper = by_way(expected(P, K, num_head_parameters=H))
    assert {row.way: row.update for row in on_two} == {row.way: on_paper[row.way].update for row in on_two}
    assert {row.gradients.bytes for row in on_two} == {row.gradients for row in on_paper.values()}


def test_every_way_has_its_turns(on_two):
    slow = {"one_by_one", "pairwise", "norms (GradNorm)", "Gram matrix"}
    for row in on_two:
        assert row.processes == 2
        assert row.seconds.n + row.refused == (1 if row.way in slow else 3)
        assert 0 < row.seconds.low <= row.seconds.median <= row.seconds.high
        assert row.ratio == row.seconds.median / on_two[0].seconds.median


def test_one_process_sends_nothing_and_ways_that_do_not_work_are_left_out():
    rows = measured(FLASH, K, batch=2, processes=1, repeats=1)
    assert {row.gradients for row in rows} | {row.update for row in rows} == {Traffic(0, 0)}
    ways = [row.way for row in rows]
    assert {"fixed weights", "one_by_one", "norms (GradNorm)"} <= set(ways)
    assert "double_backward" not in ways  # flash attention has no second derivative


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
        measured(kind, K, batch=8, processes=2, repeats=1)
    assert multiprocessing.active_children() == []


def test_what_takes_too_long_is_ended():
    endless = Kind("endless", partial(time.sleep, 1000), num_features=3, example=(3,), batch=8, quick_batch=8)
    with pytest.raises(TimeoutError, match=r"longer than 0.5 s.*longer `timeout`"):
        measured(endless, K, batch=8, processes=2, repeats=1, timeout=0.5)
    assert multiprocessing.active_children() == []


def test_a_way_that_refuses_some_turns_says_how_many(monkeypatch):
    refusals = iter([False, True, False, True, True])  # the first turn warms up

    def sometimes(losses, shared, directions, average):
        if next(refusals):
            raise RuntimeError("not on these losses")
        return one_by_one(losses, shared, directions, average)

    monkeypatch.setattr(processes, "double_backward", sometimes)
    rows = processes._rows(processes._Job(TINY, K, batch=8, processes=1, repeats=4, timeout=60))
    (row,) = (row for row in rows if row.way == "double_backward")
    assert (row.seconds.n, row.refused) == (1, 3)


def test_a_machine_without_ports_is_told_so(monkeypatch):
    def refuse(*args, **kwargs):
        raise dist.DistNetworkError("not permitted")

    monkeypatch.setattr(processes, "TCPStore", refuse)
    with pytest.raises(RuntimeError, match=r"No port can be had on 127.0.0.1.*not permitted.*with one process"):
        measured(TINY, K, batch=8, processes=2, repeats=1)


def test_kinds_that_others_cannot_know_are_refused():
    with pytest.raises(ValueError, match=r"'of a lambda' cannot be told.*partial"):
        measured(Kind("of a lambda", lambda: nn.Linear(3, 3), 3, (3,), 8, 8), K, batch=8, processes=2, repeats=1)


@pytest.mark.parametrize("name", ["num_aux", "processes", "repeats"])
def test_numbers_below_one_are_refused(name):
    with pytest.raises(ValueError, match=f"`{name}` should be at least 1. Got 0"):
        measured(TINY, **{"num_aux": 3, "batch": 8, "processes": 2, "repeats": 1, name: 0})


def test_every_process_needs_an_example():
    with pytest.raises(ValueError, match=r"at least the number of processes, 2. Got 1"):
        measured(TINY, K, batch=1, processes=2, repeats=1)


@pytest.mark.parametrize("fails", [False, True])
def test_counting_leaves_torch_as_it_was(monkeypatch, fails):
    given = []
    monkeypatch.setattr(dist, "all_reduce", lambda tensor, *_: given.append(tensor.numel()))
    before = dist.all_reduce
    try:
        with processes._counted() as sent:
            dist.all_reduce(torch.zeros(3))
            dist.all_reduce(torch.zeros(2, dtype=torch.float64))
            assert not fails, "in the middle of a step"
    except AssertionError:
        assert fails
    assert sent == [12, 16]
    assert given == [3, 2]
    assert dist.all_reduce is before


def test_a_billion_parameters_and_two_hundred_tasks():
    rows = by_way(expected(1_000_000_000, 200, every=10))
    graph, stored = rows["double_backward"], rows["every gradient stored (LibMTL, TorchJD)"]
    assert graph.gradients == 4_000_000_000
    assert graph.update == Traffic(3, 4_000_000_000 + 2 * 201 * 8 + 202 * 8)
    assert graph.run_traffic == pytest.approx(1.1)
    assert graph.run_time == pytest.approx(1 + (7 / 3 - 1) / 10)
    assert graph.memory == 8_000_000_000
    assert stored.memory == 804_000_000_000
    assert stored.run_time == pytest.approx((1 + 2 * 201) / 3)
    assert stored.run_traffic == pytest.approx(201)
    assert rows["Gram matrix"].update == Traffic(2, 804_000_000_000 + 3216)


def test_traffic_falls_with_the_number_of_steps_between_updates():
    for every in (1, 10, 100):
        dual = by_way(expected(10**9, K, every=every))["DualNumbers"]
        assert dual.run_traffic == pytest.approx(1 + 1 / every)


def test_alone_nothing_is_sent_on_paper_either():
    rows = expected(P, K, num_head_parameters=H, processes=1)
    assert {(row.gradients, row.update, row.run_traffic) for row in rows} == {(0, Traffic(0, 0), 1.0)}


@pytest.mark.parametrize("num_processes", [1, 2])
def test_an_update_takes_the_memory_that_is_expected(monkeypatch, num_processes):
    """In gradients, with activations too small to count; another process is made up, which sends what it gets."""
    monkeypatch.setattr(_distributed, "num_processes", lambda: num_processes)
    monkeypatch.setattr(dist, "all_reduce", lambda flat: flat.mul_(num_processes))
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
    updates = {way: partial(alignment, there, trunk, direction, engine=engine) for way, engine in engines.items()}
    updates |= {"norms (GradNorm)": partial(norms, there, trunk), "Gram matrix": partial(gram, there, trunk)}
    gradient = 4 * 20 * (64 * 64 + 64)
    on_paper = by_way(expected(gradient // 4, K, processes=num_processes))
    found = {way: round(peak_bytes(update) / gradient, 1) for way, update in updates.items()}
    assert found == pytest.approx({way: on_paper[way].memory / gradient for way in updates}, abs=0.15)


def test_parameters_of_two_precisions_are_measured_on_several_processes_as_on_one(monkeypatch):
    """One message carries them all, and each comes back in its own precision."""
    trunk = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1).double())
    features = trunk[1](trunk[0](torch.ones(2, 3)).double())
    losses, direction = [k * features.square().mean() for k in range(1, 6)], torch.tensor([[1.0, -1, -1, -1, -1]])
    expected = alignment(losses, trunk, direction, engine=double_backward)
    monkeypatch.setattr(_distributed, "num_processes", lambda: 2)
    monkeypatch.setattr(dist, "all_reduce", lambda flat: flat.mul_(2))
    torch.testing.assert_close(alignment(losses, trunk, direction, engine=double_backward), expected, check_dtype=False)


@pytest.mark.parametrize("way", ["double_backward", "DualNumbers", "CentralDifferences", "one_by_one"])
def test_parameters_that_no_task_touches_take_no_memory(way):
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
    assert peak_bytes(partial(alignment, there, trunk, direction, engine=engines[way])) < 4 * 1000 * 1000 / 10


def test_tables_say_it_in_words():
    row = OnProcesses("tiny", 3, "pairwise", 2, 1, 176, 3, 1520, 12.3, 10.0, 20.0, 5, 0, 2.5)
    sheet = processes_sheet(Result({}, {}, processes=(row, replace(row, refused=4))))
    cells = ("pairwise", "2", "176 B in 1", "1.52 kB in 3", "12.3", "10.0 to 20.0", "5", "2.50")
    assert [tuple(cell.text for cell in one) for one in sheet.rows] == [
        cells,
        (*cells[:6], "5, 4 refused", "2.50"),
    ]
    on_paper = expected_sheet(expected(1_000_000_000, 200, every=10)[:2], 1_000_000_000, 200, 10)
    assert [tuple(cell.text for cell in one) for one in on_paper.rows] == [
        ("fixed weights", "3", "1.00", "0 B", "1", "4.00 GB", "nothing", "1.00", "1.00"),
        ("double_backward", "7", "2.33", "8.00 GB", "2", "4.00 GB", "4.00 GB in 3", "1.13", "1.10"),
    ]
    for one in (sheet, on_paper):
        assert {len(one.headings)} == {len(cells) for cells in one.rows}


def test_problem_has_the_parameters_that_are_counted_by_hand():
    problem = Problem(TINY, K)
    assert problem.num_parameters() == P
    assert sum(p.numel() for p in problem.heads.parameters()) == H
