"""Several processes stay in step, or all of them end with a sentence; each of them runs ``together_worker.py``."""

import copy
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn

from arml import ARML, AdaLoss, Reweighter

sys.path.insert(0, str(Path(__file__).parent))
from together_worker import METHODS, TASKS, Net, Training, losses_of, shard

WORKER = Path(__file__).with_name("together_worker.py")
TIMEOUT = 300
Found = Callable[[str, int], list[Any]]

on_several_processes = pytest.mark.parametrize("processes", [2, pytest.param(3, marks=pytest.mark.long)])


def start(output: Path, processes: int, *names: str) -> tuple[str, dict[str, list[Any]]]:
    """What went wrong, and what each rank met in each scenario."""
    by_torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
    command = [sys.executable, *by_torchrun, str(WORKER), str(output), *names]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.SubprocessError as error:
        return f"{error}\n{error.stdout}\n{error.stderr}", {}
    return "", json.loads(output.read_text())


@pytest.fixture(scope="module")
def found_in(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What each rank met in a scenario. One start runs all scenarios."""

    @cache
    def start_all(processes: int) -> tuple[str, dict[str, list[Any]]]:
        return start(tmp_path_factory.mktemp("together") / "found.json", processes)

    def found(scenario: str, processes: int) -> list[Any]:
        failure, records = start_all(processes)
        assert not failure, failure
        return records[scenario]

    return found


@on_several_processes
def test_process_group_keeps_two_trainings_apart(found_in: Found, processes: int) -> None:
    for rank, weights in enumerate(found_in("process_groups", processes)):
        net = Net().double()
        reweighter = Reweighter(ARML(lr=0.1), TASKS, net.trunk, every=1)
        torch.manual_seed(rank)
        for p in net.parameters():
            nn.init.normal_(p)
        for step, expected in enumerate(weights):
            reweighter(*losses_of(net, *shard(step + rank, rank=0, world=1)))
            assert list(reweighter.weights.values()) == pytest.approx(expected, abs=1e-9)


@on_several_processes
def test_unequal_local_batch_sizes_count_by_examples(found_in: Found, processes: int) -> None:
    ranks = found_in("unequal_parts", processes)
    assert all(rank == ranks[0] for rank in ranks)
    for name, weights in ranks[0].items():
        training = Training(METHODS[name.split(",")[0]])
        for step, expected in enumerate(weights):
            training.step(training.joint(*losses_of(training.model, *shard(step, rank=0, world=1))))
            assert training.weights[-1] == pytest.approx(expected, abs=1e-8), (name, step)


ERRORS = {
    "error_before_the_first_update": "ValueError: Unknown auxiliary task 'typo'",
    "error_at_a_later_update": "ValueError: No loss was given",
    "error_in_a_closure": "KeyError: 'a broken file'",
    "error_in_an_engine": "KeyError: 'a broken file'",
    "memory_runs_out_in_an_engine": "OutOfMemoryError: no memory left",
    "graph_is_gone": "RuntimeError: Trying to backward through the graph a second time",
    "num_examples_forgotten_later": "ValueError: `num_examples` was given at the first call and is missing",
}


@on_several_processes
@pytest.mark.parametrize("scenario", ERRORS)
def test_exception_on_one_rank_is_named_on_all(found_in: Found, processes: int, scenario: str) -> None:
    *others, (last, _) = found_in(scenario, processes)
    assert last.startswith(ERRORS[scenario])
    for text, _ in others:
        assert text.startswith("ProcessError: The weights cannot be updated, because process ")
        assert f"process {processes - 1} failed with {ERRORS[scenario]}" in text
    assert all(goes_on for _, goes_on in found_in(scenario, processes))


DIFFERENCES = {
    "other_tasks": r"`tasks`: process 0 has ['a', 'b', 'c', 'd']",
    "other_settings": "`method`: process 0 has ARML(lr=0.1",
    "other_fades": "`fade`: process 0 has None",
    "other_checkpoints": "the number of calls so far: process 0 has 0",
    "other_frozen_parameters": "the number of shared parameters: process 0 has 102",
    "num_examples_on_one_process": "whether `num_examples` is given: process 0 has False",
}


@on_several_processes
@pytest.mark.parametrize("scenario", DIFFERENCES)
def test_processes_that_differ_are_refused_at_the_first_call(found_in: Found, processes: int, scenario: str) -> None:
    for text in found_in(scenario, processes):
        assert text.startswith(f"ValueError: The processes do not agree on {DIFFERENCES[scenario]}")
        assert f"process {processes - 1} has" in text


@on_several_processes
def test_fsdp2_parameters_are_refused(found_in: Found, processes: int) -> None:
    for texts in found_in("sharded_parameters", processes):
        for text in texts:
            assert "which FSDP or tensor parallelism splits over processes" in text


@on_several_processes
def test_ddp_join_is_refused(found_in: Found, processes: int) -> None:
    for text in found_in("uneven_inputs", processes):
        assert text.startswith("ValueError: DistributedDataParallel.join() cannot be used with a Reweighter")


@on_several_processes
def test_silent_process_ends_the_wait_of_the_others(found_in: Found, processes: int) -> None:
    *others, last = found_in("silent_process", processes)
    assert last == "silent"
    for text in others:
        assert text.startswith("ProcessError: An update of the weights got no answer from another process.")


def test_process_that_ends_is_noticed(tmp_path: Path) -> None:
    failure, found = start(tmp_path / "found.json", 2, "ending")
    assert not failure, failure
    assert found["ending"][0].startswith("ProcessError: An update of the weights got no answer from another process.")


def test_methods_without_gradients_take_sharded_parameters() -> None:
    layer = nn.Linear(2, 1)
    layer.weight.device_mesh = "as a DTensor has it"
    Reweighter(AdaLoss(), ["a"], layer)
    with pytest.raises(ValueError, match="holds 'weight', which FSDP or tensor parallelism splits"):
        Reweighter(ARML(), ["a"], layer)


def test_num_examples_change_nothing_on_one_process() -> None:
    weights = []
    for num_examples in (None, 12):
        training = Training(ARML(lr=0.1))
        for step in range(3):
            training.joint(*losses_of(training.model, *shard(step)), num_examples=num_examples)
        weights.append(training.weights)
    assert weights[0] == weights[1]
    with pytest.raises(ValueError, match=r"`num_examples` should be a whole number of at least 1. Got 0"):
        Training(ARML()).joint(*losses_of(training.model, *shard(0)), num_examples=0)


def test_process_group_is_shared_by_copies_and_not_pickled() -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        group = dist.new_group([0])
        reweighter = Reweighter(ARML(), ["a"], nn.Linear(2, 1), process_group=group)
        assert copy.deepcopy(reweighter)._processes.group is group
        with pytest.raises(TypeError, match=r"cannot be pickled. Save its state_dict\(\) instead"):
            pickle.dumps(reweighter)
        with pytest.raises(ValueError, match="not a member of the `process_group`"):
            Reweighter(ARML(), ["a"], nn.Linear(2, 1), process_group=dist.GroupMember.NON_GROUP_MEMBER)
    finally:
        dist.destroy_process_group()
