"""Several processes train one run: its record is that of one process, and it goes on with any number of them."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from arml.lab.data.draws import Part, draw_part, take_part
from arml.lab.learners.base import Learner
from arml.lab.learners.fada import FADA, FADASettings
from arml.lab.learners.joint_targets import no_augmentation
from arml.lab.learners.shape_bias import ShapeBias, ShapeBiasSettings
from arml.lab.processes import check_sharing, seed_step

sys.path.insert(0, str(Path(__file__).parent))
from run_worker import RUNS, main, train_named

WORKER = Path(__file__).with_name("run_worker.py")
SHORT = ("s4l with noise", "targets", "domains")
"""The runs that are tried with every change; ``make test-long`` tries all."""


class Launch(NamedTuple):
    """How a job of torchrun ended."""

    folder: Path
    failure: str
    """What the processes wrote to the terminal; empty if all went well."""
    seconds: float
    """Time from the failure of a process to the end of the job."""


def launch(folder: Path, processes: int, *words: str) -> Launch:
    by_torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
    command = [sys.executable, *by_torchrun, str(WORKER), str(folder), *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    failed = folder / "failed"
    return Launch(
        folder, done.stderr if done.returncode else "", time.time() - failed.stat().st_mtime if failed.exists() else 0
    )


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        for key in sorted(value):
            yield from numbers(value[key])
    else:
        yield float(value)


def read_numbers(folder: Path, name: str) -> torch.Tensor:
    """Every number of a record, in order."""
    assert (folder / name / "done").exists(), name
    first, *lines = map(json.loads, (folder / name / "record.jsonl").read_text().splitlines())
    assert first["run"]["precision"] == "fp64"
    return torch.tensor([number for line in lines for number in numbers(line)], dtype=torch.float64)


def environment_of(folder: Path, name: str) -> dict[str, str]:
    with (folder / name / "record.jsonl").open() as file:
        found: dict[str, str] = json.loads(next(file))["environment"]
    return found


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs on one process."""
    folder = tmp_path_factory.mktemp("alone")
    for name in SHORT:
        train_named(name, folder)
    return folder


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Launch:
    """The runs on two processes; some begin on one process, some end on one, and at last a process fails."""
    folder = tmp_path_factory.mktemp("together")
    train_named("targets", folder, stop_at=7)  # one process, then two
    ended = launch(folder, 2, "s4l with noise@7", "s4l with noise", "targets", "domains@7", "dropout!1")
    train_named("domains", folder)  # two processes, then one
    return ended


@pytest.mark.parametrize("name", SHORT)
def test_the_record_is_that_of_one_process(alone: Path, together: Launch, name: str) -> None:
    torch.testing.assert_close(
        read_numbers(together.folder, name), read_numbers(alone, name), rtol=0, atol=1e-9, msg=together.failure or None
    )
    assert environment_of(alone, name)["processes"] == "1"


def test_the_record_names_the_processes_that_began_it(together: Launch) -> None:
    started = {name: environment_of(together.folder, name)["processes"] for name in SHORT}
    assert started == {"s4l with noise": "2", "targets": "1", "domains": "2"}


def test_a_failing_process_ends_the_job_with_its_own_error(together: Launch) -> None:
    assert "ValueError: the data of this process are broken" in together.failure
    assert together.seconds < 60
    assert not (together.folder / "dropout" / "done").exists()


@pytest.mark.long
@pytest.mark.parametrize("processes", [2, 4])
def test_every_learner_has_the_record_of_one_process(tmp_path: Path, processes: int) -> None:
    main(tmp_path / "one")
    assert not launch(tmp_path / "many", processes, *RUNS).failure
    for name in RUNS:
        many, one = (read_numbers(tmp_path / folder, name) for folder in ("many", "one"))
        torch.testing.assert_close(many, one, rtol=0, atol=1e-9, msg=name)


@pytest.mark.long
def test_the_command_line_trains_on_two_processes(tmp_path: Path) -> None:
    words = ["train", "ssl", "--steps", "6", "--batch-labelled", "8", "--batch-unlabelled", "8", "--device", "cpu"]
    by_torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "arml"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    command = [*by_torchrun, *words, "--out", str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("test error") == 1, "only the first process speaks"
    (record,) = tmp_path.glob("*/record.jsonl")
    assert environment_of(record.parents[1], record.parent.name)["processes"] == "2"


@pytest.mark.parametrize(
    "learner",
    [
        FADA(FADASettings(), ("photo", "sketch"), no_augmentation, steps=10),
        ShapeBias(ShapeBiasSettings(num_permutations=1), ("photo", "sketch"), no_augmentation),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_learners_that_compare_images_are_refused(learner: Learner[Any]) -> None:
    with pytest.raises(ValueError, match="compares the images of a batch with each other, so 2 processes cannot share"):
        check_sharing(learner, Part(0, 2))
    check_sharing(learner, Part())


def test_batches_that_cannot_be_divided_are_refused() -> None:
    message = "7 examples cannot be divided by 2. Choose batch sizes that are multiples of 2"
    with draw_part(Part(1, 2)), pytest.raises(ValueError, match=message):
        take_part(torch.arange(7))


def test_dropout_differs_between_processes_and_steps_and_repeats() -> None:
    def draw(step: int, part: Part) -> float:
        seed_step(3, step, part)
        return float(torch.rand(()))

    drawn = [draw(step, Part(rank, 2)) for step in (0, 1) for rank in (0, 1)]
    assert len(set(drawn)) == 4
    assert drawn[0] == draw(0, Part(0, 2))
