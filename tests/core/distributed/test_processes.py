"""N processes on N shards hold the weights of one process on the whole batch; each of them runs ``worker.py``."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import arml

WORKER = Path(__file__).with_name("worker.py")
TIMEOUT = 300
"""Seconds for one start. The worker's collectives give up earlier, and then say where they were waiting."""

SHARES = ("EXP3",)
"""Probabilities that sum to 1: those of tasks that are missing move with the others."""
LOSSES_ALONE = ("AdaLoss", "DWA", "UncertaintyWeighting", "FAMO", "TorchJDScalarizer")
"""Methods that look at no gradient."""
Runs = dict[str, list[dict[str, Any]]]
"""What each rank recorded, by the name of the run."""
RunsOf = Callable[[str, int], Runs]

on_several_processes = pytest.mark.parametrize("processes", [2, pytest.param(3, marks=pytest.mark.long)])
on_any_processes = pytest.mark.parametrize("processes", [1, 2, pytest.param(3, marks=pytest.mark.long)])
in_every_scenario = pytest.mark.parametrize(
    "scenario",
    ["methods", "engines", "one_head", "accumulation", "langevin", "resume", "missing", "turns", "nan", "fallback"],
)


@pytest.fixture(scope="module")
def runs_of(tmp_path_factory: pytest.TempPathFactory) -> RunsOf:
    """The runs of a scenario on a number of processes. One start runs all scenarios; a failed one is not repeated."""

    @cache
    def start(processes: int) -> tuple[str, dict[str, Runs]]:
        output = tmp_path_factory.mktemp("processes") / "records.json"
        by_torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
        command = [sys.executable, *(by_torchrun if processes > 1 else []), str(WORKER), str(output)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        try:
            subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=TIMEOUT)
        except subprocess.SubprocessError as error:
            return f"{error}\n{error.stderr}", {}
        return "", json.loads(output.read_text())

    def runs(scenario: str, processes: int) -> Runs:
        failure, records = start(processes)
        assert not failure, failure
        return records[scenario]

    return runs


def tensors(runs: Runs, what: str) -> dict[str, Tensor]:
    """``weights`` [ranks, calls, 1 + K] or ``parameters`` [ranks, P] of every run."""
    return {run: torch.tensor([rank[what] for rank in ranks], dtype=torch.float64) for run, ranks in runs.items()}


def large_distances(
    found: dict[str, Tensor], expected: dict[str, Tensor], *, tolerance: float = 1e-9
) -> dict[str, float]:
    """Runs that differ from ``expected`` by more than a tolerance, and by how much."""
    distances = {run: float((value - expected[run]).abs().max()) for run, value in found.items()}
    allowed = {run: 1e-5 if "central differences" in run else tolerance for run in found}
    return {run: distance for run, distance in distances.items() if not distance <= allowed[run]}


def test_every_method_is_trained(runs_of: RunsOf) -> None:
    exported = {name for name in arml.__all__ if arml.Method in getattr(getattr(arml, name), "__mro__", ())}
    if not importlib.util.find_spec("torchjd"):
        exported -= {"TorchJD", "TorchJDScalarizer"}
    trained = {run.split()[0] for run in runs_of("methods", 1)}
    assert trained == exported - {"Method"}


@in_every_scenario
def test_weights_move(runs_of: RunsOf, scenario: str) -> None:
    weights = tensors(runs_of(scenario, 1), "weights")
    moved = {run: float((w - w[:, :1]).abs().max()) for run, w in weights.items()}
    assert {run: way for run, way in moved.items() if way < 0.05 and not run.startswith(("Uniform", "Fixed"))} == {}


@on_several_processes
@in_every_scenario
def test_weights_are_those_of_one_process(runs_of: RunsOf, scenario: str, processes: int) -> None:
    one, many = tensors(runs_of(scenario, 1), "weights"), tensors(runs_of(scenario, processes), "weights")
    assert large_distances(many, one) == {}


@on_several_processes
@in_every_scenario
def test_parameters_are_those_of_one_process(runs_of: RunsOf, scenario: str, processes: int) -> None:
    one, many = tensors(runs_of(scenario, 1), "parameters"), tensors(runs_of(scenario, processes), "parameters")
    assert large_distances(many, one) == {}


@on_several_processes
@in_every_scenario
def test_all_ranks_hold_the_same_bits(runs_of: RunsOf, scenario: str, processes: int) -> None:
    runs = runs_of(scenario, processes)
    assert {run for run, ranks in runs.items() if len(ranks) != processes} == set()
    states = {run: [(rank["weights"], rank["parameters"]) for rank in ranks] for run, ranks in runs.items()}
    assert {run for run, (first, *others) in states.items() if any(state != first for state in others)} == set()


@on_several_processes
def test_answers_are_compared_on_all_ranks(runs_of: RunsOf, processes: int) -> None:
    for count in (1, processes):
        assert [rank["notes"] for rank in runs_of("one_head", count)["Agreement"]] == [["answers"]] * count


@on_several_processes
def test_what_fails_on_one_rank_is_dropped_by_all(runs_of: RunsOf, processes: int) -> None:
    for run, ranks in runs_of("fallback", processes).items():
        reasons = [[note.split("(", 1)[1] for note in rank["notes"]] for rank in ranks]
        assert all(len(notes) == 2 for notes in reasons), run  # dual numbers, then central differences
        assert all(note.startswith("it failed on another process") for note in reasons[0]), run
        assert all(note.startswith("the closure does not repeat") for note in reasons[-1]), run


@on_several_processes
def test_ranks_agree_when_only_one_holds_a_task_in_another_precision(runs_of: RunsOf, processes: int) -> None:
    for run, ranks in runs_of("precision", processes).items():
        assert all(rank["weights"] == ranks[0]["weights"] for rank in ranks), run
        assert ranks[0]["weights"][-1] != ranks[0]["weights"][0], run


@on_several_processes
def test_inner_products_are_those_of_one_process(runs_of: RunsOf, processes: int) -> None:
    one, many = tensors(runs_of("measures", 1), "weights"), tensors(runs_of("measures", processes), "weights")
    assert set(many) == {"alignment", "gram", "norms"}
    assert large_distances(many, one) == {}


@on_any_processes
def test_engines_agree(runs_of: RunsOf, processes: int) -> None:
    weights = tensors(runs_of("engines", processes), "weights")
    expected = {run: weights[f"{run.split(',')[0]}, double_backward"] for run in weights}
    assert large_distances(weights, expected) == {}


@on_several_processes
def test_task_that_nobody_holds_keeps_its_weight(runs_of: RunsOf, processes: int) -> None:
    for run, weights in tensors(runs_of("missing", processes), "weights").items():
        if run.startswith(SHARES):
            continue
        for step in (2, 6, 10):  # nobody holds b, which is number 2
            assert torch.equal(weights[:, step, 2], weights[:, step - 1, 2]), run
        if not run.startswith(LOSSES_ALONE):  # which need no gradients
            assert torch.equal(weights[:, 6], weights[:, 5]), run  # all tasks wait for b


@on_several_processes
def test_task_that_is_nan_on_one_rank_is_missing_on_all(runs_of: RunsOf, processes: int) -> None:
    runs = runs_of("nan", processes)
    for run, weights in tensors(runs, "weights").items():
        if run.startswith(SHARES):
            continue
        # Weights that never change look at nothing, and some methods at no gradient.
        tasks = [] if run in ("Uniform", "Fixed") else ["b"] if run in LOSSES_ALONE else ["b", "c"]
        for step in (3, 6)[: len(tasks)]:
            number = " abcd".index(tasks[step == 6])
            assert torch.equal(weights[:, step, number], weights[:, step - 1, number]), run
        for rank in runs[run]:
            named = [re.findall("of '(.)' is not finite", note) for note in rank["notes"]]
            assert named == [[task] for task in tasks], run


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
@on_several_processes
def test_noise_stops_at_the_same_step_on_all_ranks(runs_of: RunsOf, processes: int, optimizer: str) -> None:
    runs = runs_of("langevin", processes)
    steps = {int(note.split()[2]) for rank in runs[optimizer] for note in rank["notes"]}
    assert len(steps) == 1
    assert 2 <= steps.pop() < 12
    parameters = tensors(runs, "parameters")
    assert (parameters[optimizer] - parameters[f"{optimizer}, no noise"]).abs().max() > 1e-3


@on_several_processes
def test_different_seeds_of_the_noise_drift_apart(runs_of: RunsOf, processes: int) -> None:
    parameters = tensors(runs_of("drift", processes), "parameters")["SGD"]
    assert (parameters[0] - parameters[1]).abs().max() > 1e-3


@on_any_processes
def test_all_ranks_continue_from_what_one_rank_saved(runs_of: RunsOf, processes: int) -> None:
    resumed, in_one_go = (tensors(runs_of(scenario, processes), "weights") for scenario in ("resume", "methods"))
    # Three numbers have more than one sum: DDP adds up gradients in another order in its first step than later.
    assert large_distances(resumed, in_one_go, tolerance=0 if processes < 3 else 1e-12) == {}
