"""Batches come from sources in proportion to the weights, and resume exactly."""

from collections import Counter
from itertools import islice

import pytest
import torch
from core.test_reweighter import TASKS, Net
from torch.testing import assert_close
from torch.utils.data import DataLoader, TensorDataset

from arml import EXP3, DoGE, Fixed, Reweighter, SourceSampler

SOURCES = {"a": range(10), "b": range(10, 13), "c": [20, 22, 24, 26]}
HOME = {row: name for name, rows in SOURCES.items() for row in rows}


def weights():
    return {"a": 3.0, "b": 1.0, "c": 0.0}


def test_sources_are_drawn_in_proportion_to_their_weights():
    sampler = SourceSampler(SOURCES, 2, weights, num_batches=4000)
    drawn = Counter(HOME[rows[0]] for rows in sampler)
    assert set(drawn) == {"a", "b"}
    assert abs(drawn["a"] / 4000 - 0.75) < 0.03  # 4 standard deviations
    assert sampler.probabilities() == {"a": 0.75, "b": 0.25, "c": 0.0}
    assert_close(SourceSampler(SOURCES, 2, weights, explore=0.3).probabilities(), {"a": 0.625, "b": 0.275, "c": 0.1})


def test_batches_have_one_source_and_every_row_comes_once_per_pass():
    sampler = SourceSampler(SOURCES, 2, num_batches=200)
    seen = {name: [] for name in SOURCES}
    for rows in sampler:
        assert {HOME[row] for row in rows} == {sampler.source}
        seen[sampler.source] += rows
    for name, rows in SOURCES.items():
        passes = [seen[name][i : i + len(rows)] for i in range(0, 5 * len(rows), len(rows))]
        assert all(sorted(one) == sorted(rows) for one in passes)
        assert len({tuple(one) for one in passes}) > 1


def test_all_weights_of_zero_draw_all_sources_alike():
    sampler = SourceSampler(SOURCES, 1, lambda: dict.fromkeys(SOURCES, 0.0))
    assert_close(sampler.probabilities(), dict.fromkeys(SOURCES, 1 / 3))


@pytest.mark.parametrize("ahead", [0, 3])
def test_it_goes_on_exactly_also_after_batches_that_were_drawn_ahead(ahead):
    """Weights change at every batch, and a killed loop had ``ahead`` batches that it never trained on."""
    now = {"a": 1.0, "b": 1.0, "c": 1.0}

    def go(sampler, num, start=0):
        taken = []
        for step in range(start, start + num):
            now["a"], now["c"] = 1.0 + step % 5, 1.0 + step % 3
            taken.append(sampler.draw())
        return taken

    def make():
        return SourceSampler(SOURCES, 3, lambda: now, seed=4, main=range(100, 107))

    whole, killed, resumed = make(), make(), make()
    expected = go(whole, 40)
    go(killed, 17 + ahead)
    resumed.load_state_dict(killed.state_dict(taken=17))
    assert go(resumed, 23, start=17) == expected[17:]
    again = make()
    again.load_state_dict(resumed.state_dict())
    assert again.state_dict() == resumed.state_dict()


def test_processes_share_the_batches_of_one():
    one = SourceSampler(SOURCES, 6, seed=1, main=range(50, 60))
    parts = [SourceSampler(SOURCES, 3, seed=1, main=range(50, 60), rank=rank, num_replicas=2) for rank in (0, 1)]
    for whole, *some in islice(zip(one, *parts, strict=True), 20):
        assert sorted(whole) == sorted(some[0] + some[1])
        assert len({HOME[rows[-1]] for rows in some}) == 1


def test_rows_of_the_main_task_come_first():
    sampler = SourceSampler(SOURCES, 2, main=range(100, 104), num_batches=8)
    for rows in sampler:
        assert len(rows) == 4
        assert all(row >= 100 for row in rows[:2])
    assert len(sampler) == 8


def test_a_loader_of_torch_takes_it():
    data = TensorDataset(torch.arange(30))
    batches = list(DataLoader(data, batch_sampler=SourceSampler(SOURCES, 2, num_batches=5)))
    assert [len(rows) for (rows,) in batches] == [2] * 5


@pytest.mark.parametrize("explore", [0.0, 0.5])
def test_corrected_steps_are_unbiased(explore):
    """The mean over sources, by their probability, of the step with one source is the step with all of them."""
    net = Net()
    reweighter = Reweighter(Fixed([0.5, 2.0, 0.25, 1.25]), TASKS, net.trunk)
    rows = {name: range(i, i + 1) for i, name in enumerate(TASKS)}
    sampler = SourceSampler(rows, 1, reweighter, explore=explore)
    main, aux = net.losses()
    probabilities = sampler.probabilities()
    steps = {name: reweighter(main, {name: aux[name]}, counts=sampler.counts(name)) for name in TASKS}
    assert_close(sum(p * steps[name] for name, p in probabilities.items()), reweighter(main, aux))


def test_uncorrected_steps_count_every_source_alike():
    net = Net()
    reweighter = Reweighter(Fixed([0.5, 2.0, 0.25, 0.0]), TASKS, net.trunk)
    sampler = SourceSampler(dict.fromkeys(TASKS, range(2)), 1, reweighter, explore=0.5, correct=False)
    main, aux = net.losses()
    for name in TASKS:
        assert_close(reweighter(main, {name: aux[name]}, counts=sampler.counts(name)), main + 2.75 * aux[name])


@pytest.mark.parametrize(("method", "steps"), [(EXP3(), 300), (DoGE(lr=1.0), 300)], ids=repr)
def test_one_source_per_step_is_enough_to_find_the_one_that_helps(method, steps):
    """Source good has the main task's own targets, source bad their opposite, source noise random ones."""
    torch.manual_seed(0)
    net = torch.nn.Linear(5, 1).double()
    target = torch.randn(5, 1).double()
    reweighter = Reweighter(method, ["good", "bad", "noise"], net, every=1, convergence=None)
    sampler = SourceSampler(dict.fromkeys(reweighter.tasks, range(8)), 8, reweighter)
    for _ in range(steps):
        sampler.draw()
        x, main_x = torch.randn(2, 8, 5).double()
        y = {"good": x @ target, "bad": -x @ target, "noise": torch.randn(8, 1).double()}[sampler.source]
        main, aux = (net(main_x) - main_x @ target).square().mean(), (net(x) - y).square().mean()
        reweighter(main, {sampler.source: aux}, counts=sampler.counts(sampler.source))
    probabilities = sampler.probabilities()
    assert probabilities["good"] > 0.7
    assert probabilities["bad"] < probabilities["noise"] + 0.02


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SourceSampler({}, 2), "at least one each. Got {}"),
        (lambda: SourceSampler({"a": [1], "b": []}, 2), "Got no rows for 'b'. Leave such a source out"),
        (lambda: SourceSampler(SOURCES, 0), "`batch_size` should be a whole number of at least 1. Got 0"),
        (lambda: SourceSampler(SOURCES, 2, explore=2), "`explore` should be a share .* Got 2"),
        (lambda: SourceSampler({"e": [1]}, 2, weights), "no weight for the source 'e'. Known: a, b, c"),
        (lambda: SourceSampler(SOURCES, 2, weights).counts("e"), "Unknown source 'e'. Known: a, b, c"),
        (lambda: SourceSampler(SOURCES, 2).source, "No batch has been drawn yet"),
        (
            lambda: SourceSampler(SOURCES, 2).load_state_dict(SourceSampler({"a": [1]}, 2, seed=3).state_dict()),
            r"saved sampler has the sources \['a'\] and seed 3",
        ),
    ],
)
def test_errors_say_what_to_do(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_an_endless_sampler_has_no_length():
    with pytest.raises(TypeError, match=r"endless\. Give `num_batches`"):
        len(SourceSampler(SOURCES, 2))


@pytest.mark.parametrize("counts", [{"e": 1.0}, {"a": -1.0}, {"a": float("nan")}])
def test_counts_are_checked(counts):
    net = Net()
    with pytest.raises(ValueError, match="`counts` should map names of auxiliary tasks"):
        Reweighter(Fixed([1.0] * 4), TASKS, net.trunk)(*net.losses(), counts=counts)
