"""Training on a second type of device: the same numbers, no tensor left behind, and no wait that could be avoided."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from arml.lab.catalogue import LEARNERS
from arml.lab.data.placement import Placement
from arml.lab.hardware import choose_device

WORKER = Path(__file__).with_name("steps.py")
WAITING = {"dg fada", "dg shape_bias"}
"""Pairs and styles have as many entries as the batch has images of some kind: that number must be read."""
MERGING = {"mlc forkmerge"}
"""Its merges read errors on validation examples."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What every learner did. The device stays registered with torch, so it has a process of its own."""
    if not hasattr(torch.utils.backend_registration, "_setup_privateuseone_for_python_backend"):
        pytest.skip("this version of torch cannot register a device from Python")
    environment, output = {**os.environ, "OMP_NUM_THREADS": "1"}, tmp_path_factory.mktemp("devices") / "found.json"
    command = [sys.executable, WORKER, output]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
    results: dict[str, Any] = json.loads(output.read_text())
    return results


@pytest.mark.long
def test_every_learner_trains_on_a_second_device(found: dict[str, Any]) -> None:
    expected = {
        f"{setting} {learner}"
        for setting, learners in LEARNERS.items()
        for learner, facts in learners.items()
        if not facts.simple
    }
    assert expected <= set(found)
    for name in expected:
        numbers, on_cpu = (torch.tensor(found[name][key], dtype=torch.float64) for key in ("numbers", "expected"))
        torch.testing.assert_close(numbers, on_cpu, rtol=1e-3, atol=1e-3, msg=name)


@pytest.mark.slow
def test_the_estimators_train_on_a_second_device(found: dict[str, Any]) -> None:
    for numbers, on_cpu in zip(found["estimators"]["numbers"], found["estimators"]["expected"], strict=True):
        assert numbers == pytest.approx(on_cpu, rel=1e-3, abs=1e-3)


@pytest.mark.slow
def test_weights_are_learned_there(found: dict[str, Any]) -> None:
    for name in ("ssl s4l", "mlc joint", "dg jt", "suite joint"):
        first, *_, last = (step[1:] for step in found[name]["numbers"])
        assert first != [1.0] * len(first), name
        assert last != first, name


@pytest.mark.slow
def test_steps_that_update_no_weights_wait_for_nothing(found: dict[str, Any]) -> None:
    waiting = {name for name, steps in found.items() if steps["waits"]} - {"forgotten device"}
    assert waiting <= WAITING | MERGING
    assert all("outputs_of" in wait or "train.py" in wait for name in MERGING for wait in found[name]["waits"])


@pytest.mark.slow
def test_a_forgotten_device_and_a_number_that_is_read_are_noticed(found: dict[str, Any]) -> None:
    (error,), waits = found["forgotten device"]["error"], found["forgotten device"]["waits"]
    assert error.startswith("aten::add was given tensors on second and on cpu")
    assert waits[0] == "False"
    assert waits[1].startswith("aten::_local_scalar_dense")


def test_auto_is_the_best_there_is() -> None:
    best = torch.accelerator.current_accelerator(check_available=True)
    assert choose_device("auto").type == ("cpu" if best is None else best.type)
    assert choose_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("name", ["gpu", "cuda:x"])
def test_unknown_devices_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"--device should be auto, cpu, cuda, cuda:NUMBER or mps. Got '{name}'"):
        choose_device(name)


def test_a_missing_device_is_refused_with_what_is_there() -> None:
    missing = "mps" if torch.cuda.is_available() else "cuda"
    with pytest.raises(ValueError, match=f"--device {missing} is not available: torch {torch.__version__[:4]}"):
        choose_device(missing)


def test_data_sets_move_to_the_device_while_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arml.lab.data.placement.free_memory", lambda device: 4 * 100.0)
    place, small, large = Placement(torch.device("meta")), torch.zeros(80, 1), torch.zeros(10, 1)
    small, large = small.to(torch.uint8), large.expand(10, 30).contiguous()
    for data, fits in ((small, True), (large, False)):
        assert place.rows(data, torch.tensor([3, 1])).device.type == "meta"
        assert (place._kept[id(data)][1] is not None) == fits
