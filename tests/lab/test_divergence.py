"""Runs that leave the finite numbers: they are stopped, named, counted, and never averaged."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from lab.parts import make
from torch import nn

from arml.lab.divergence import MOST_SKIPPED, DivergedError, Guard
from arml.lab.run_kinds import MultiLabel
from arml.lab.trace import Trace, divergence, read, result
from arml.lab.train import train
from arml.report.data.records import collect
from arml.report.tables.rows import tables

RUN = MultiLabel(
    network="mlp-8",
    batch_main=8,
    batch_aux=8,
    steps=8,
    evaluate_every=4,
    record_every=2,
    checkpoint_every=4,
    method="uniform",
)


def strict(path):
    """All lines, by a parser that knows no NaN."""

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    return [json.loads(line, parse_constant=refuse) for line in path.read_text().splitlines()]


def poison(parts, steps, value=math.inf, task="Class3"):
    """The loss of one task is not finite at these steps, counted from 1."""
    losses, at = parts.learner.losses, iter(range(1, 10_000))

    def poisoned(*given):
        main, aux = losses(*given)
        return (main, aux | {task: aux[task] * value}) if next(at) in steps else (main, aux)

    parts.learner.losses = poisoned
    return parts


def test_a_run_that_diverges_is_stopped_and_says_where_and_why(tmp_path):
    parts = poison(make(RUN, tmp_path), {5})
    with pytest.raises(DivergedError, match=r"diverged at step 5: the loss of Class3 is not a finite.*--on-nan skip"):
        train(RUN, parts, tmp_path / "run")
    assert not (tmp_path / "run" / "done").exists()
    last = strict(tmp_path / "run" / "record.jsonl")[-1]
    assert last == {
        "step": 5,
        "diverged": {"tasks": ["Class3"], "reason": "the loss of Class3 is not a finite number"},
    }
    assert all(p.isfinite().all() for p in parts.network.parameters())
    records = read(tmp_path / "run" / "record.jsonl").records
    assert divergence(records) == last
    assert result(records) is None


def test_a_step_size_that_is_much_too_large_is_found(tmp_path):
    run = replace(RUN, optimizer="sgd", lr=1e6, steps=20)
    with pytest.raises(
        DivergedError, match=r"diverged at step \d+: the loss of main, Class2, Class3 and 11 more is not"
    ):
        train(run, make(run, tmp_path), tmp_path / "run")
    strict(tmp_path / "run" / "record.jsonl")


def test_single_steps_can_be_left_out(tmp_path):
    run = replace(RUN, on_nan="skip")
    plain = train(RUN, make(RUN, tmp_path), tmp_path / "plain")
    parts = poison(make(run, tmp_path), {2, 5}, math.nan)
    outcome = train(run, parts, tmp_path / "run")
    assert math.isfinite(outcome["test_error"])
    assert outcome != plain
    lines = strict(tmp_path / "run" / "record.jsonl")
    assert [line for line in lines if "skipped" in line] == [
        {"step": 2, "skipped": ["Class3"]},
        {"step": 5, "skipped": ["Class3"]},
    ]
    assert lines[2]["losses"]["Class3"] is None


def test_a_run_that_never_recovers_is_not_skipped_for_ever(tmp_path):
    run = replace(RUN, on_nan="skip", steps=60, evaluate_every=60)
    with pytest.raises(DivergedError, match=f"step {3 + MOST_SKIPPED}: .* for {MOST_SKIPPED + 1} steps in a row"):
        train(run, poison(make(run, tmp_path), range(3, 100)), tmp_path / "run")


def test_a_killed_run_goes_on_counting_steps_that_are_left_out(tmp_path):
    run = replace(RUN, on_nan="skip", steps=60, evaluate_every=60)
    whole, resumed = (poison(make(run, tmp_path), range(3, 100)) for _ in range(2))
    with pytest.raises(DivergedError):
        train(run, whole, tmp_path / "whole")
    (tmp_path / "again").mkdir()
    for name in ("record.jsonl", "checkpoint.pt"):
        (tmp_path / "again" / name).write_bytes((tmp_path / "whole" / name).read_bytes())
    with pytest.raises(DivergedError):  # from the checkpoint after step 20, with 18 steps left out so far
        train(run, poison(resumed, range(1, 100)), tmp_path / "again", resume=True)
    records = [(tmp_path / name / "record.jsonl").read_bytes() for name in ("whole", "again")]
    assert records[0] == records[1]


@pytest.fixture
def guard():
    written = []
    made = Guard("stop", SimpleNamespace(skipped=0), written.append)
    made.written = written
    return made


def test_a_network_that_is_not_finite_is_not_evaluated(guard):
    network = nn.BatchNorm1d(2)
    guard.check_network(3, network)
    network.running_var[1] = math.inf
    with pytest.raises(DivergedError, match=r"step 3: running_var in the network is not finite"):
        guard.check_network(3, network)


@pytest.mark.parametrize("change", [{"test_rmse": math.inf}, {"weights": {"a": math.nan}}])
def test_a_result_that_is_not_finite_is_none(guard, change):
    good = {"step": 7, "test_error": 3.0, "weights": {"a": 1.0}}
    guard.check_outcome(good)
    with pytest.raises(DivergedError, match="step 7"):
        guard.check_outcome(good | change)
    assert guard.written[0]["diverged"]["tasks"] == []


def test_gradients_count_when_steps_may_be_left_out():
    guard = Guard("skip", SimpleNamespace(skipped=0), lambda line: None)
    weight = nn.Parameter(torch.zeros(1))
    weight.grad = torch.tensor([math.nan])
    assert not guard.admit(1, {"main": torch.ones(())}, torch.ones(()), [weight])
    weight.grad = torch.ones(1)
    assert guard.admit(2, {"main": torch.ones(())}, torch.ones(()), [weight])


def test_a_record_is_json_whatever_is_written(tmp_path):
    with Trace(tmp_path / "record.jsonl", RUN) as trace:
        trace.write({"step": 1, "losses": {"main": math.nan}, "agreement": {"a": math.inf, "b": (1.0, -math.inf)}})
    assert strict(tmp_path / "record.jsonl")[1] == {
        "step": 1,
        "losses": {"main": None},
        "agreement": {"a": None, "b": [1.0, None]},
    }


def test_tables_count_diverged_runs_and_average_the_others(tmp_path):
    for seed in range(3):
        run = replace(RUN, seed=seed)
        parts = make(run, tmp_path)
        if seed != 1:
            train(run, parts, tmp_path / run.name())
            continue
        with pytest.raises(DivergedError):
            train(run, poison(parts, {3}), tmp_path / run.name())
    found = collect([tmp_path])
    assert found.skipped == []
    assert "diverged at step 3" in found.failed[replace(RUN, seed=1)]
    ((row,),) = tables(found.recorded, found.failed).values()
    assert (row.diverged, row.failed, row.unfinished, row.metrics["error"].n) == (1, 0, 0, 2)


def test_folders_of_earlier_runs_keep_their_names():
    assert RUN.name() == replace(RUN, on_nan="stop").name() != replace(RUN, on_nan="skip").name()
    assert MultiLabel().name() == "yeast-Class1-50-joint-arml-0-6c17f3cf54"
