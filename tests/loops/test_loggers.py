"""Numbers reach the real packages."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from arml import Recorder, Reweighter, Uniform, loggers
from arml.loggers import MLflow, TensorBoard, WandB

SLOW_PACKAGES = "lightning", "transformers", "accelerate", "wandb", "mlflow", "tensorboard", "matplotlib", "pandas"


def record(tmp_path, given):
    theta = torch.ones(2, requires_grad=True)
    reweighter = Reweighter(Uniform(), ["a"], [theta])
    with Recorder(tmp_path / "runs", reweighter, every=1, loggers=given) as recorder:
        for _ in range(3):
            reweighter(theta.sum(), {"a": theta.prod()})
        recorder.finish({"error": 7.0})
    return recorder


def test_tensorboard_is_the_default(tmp_path):
    folder = record(tmp_path, None).folder / "tensorboard"
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(folder))
    events.Reload()
    assert {"losses/main", "losses/a", "weights/a", "test_error"} <= set(events.Tags()["scalars"])
    assert [(e.step, e.value) for e in events.Scalars("losses/main")] == [(1, 2.0), (2, 2.0), (3, 2.0)]


@pytest.mark.slow
def test_mlflow_has_the_numbers_in_its_file_store(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # newer versions ask for it
    mlflow = pytest.importorskip("mlflow")
    uri = f"file:{tmp_path / 'mlflow'}"
    record(tmp_path, [MLflow(experiment="mine", tracking_uri=uri)])
    assert mlflow.active_run() is None
    client = mlflow.MlflowClient(uri)
    (run,) = client.search_runs([client.get_experiment_by_name("mine").experiment_id])
    assert run.data.metrics["test_error"] == 7.0
    history = client.get_metric_history(run.info.run_id, "losses/main")
    assert [(m.step, m.value) for m in history] == [(1, 2.0), (2, 2.0), (3, 2.0)]


@pytest.mark.slow
def test_wandb_writes_a_run_without_a_network(tmp_path):
    """In a process of its own: wandb keeps threads and changes signals."""
    pytest.importorskip("wandb")
    code = (
        "import torch\nfrom arml import Recorder, Reweighter, Uniform\nfrom arml.loggers import WandB\n"
        "theta = torch.ones(2, requires_grad=True)\nreweighter = Reweighter(Uniform(), ['a'], [theta])\n"
        "with Recorder('runs', reweighter, every=1, loggers=[WandB(project='mine', mode='offline')]) as recorder:\n"
        "    reweighter(theta.sum(), {'a': theta.prod()})\n    recorder.finish({'error': 7.0})\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, timeout=240)
    (written,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    assert all(name in written.read_bytes() for name in (b"losses/main", b"weights/a", b"test_error"))


def test_a_run_of_wandb_that_the_caller_began_is_left_open():
    class Run:
        def __init__(self):
            self.logged, self.finished = [], False

        def log(self, numbers):
            self.logged.append(numbers)

        def finish(self):
            self.finished = True

    run = Run()
    logger = WandB(run)
    logger.log(3, {"losses/main": 0.5})
    logger.close()
    assert run.logged == [{"losses/main": 0.5, "arml/step": 3}]
    assert not run.finished


def test_a_package_that_is_missing_or_too_old_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ImportError, match=r"TensorBoard needs the package tensorboard\. Install it with `pip install"):
        TensorBoard(tmp_path)
    with pytest.raises(ImportError, match=r"Mine needs torch>=99.0. Found 2.* Update it with `pip install -U"):
        loggers.require("torch", "Mine", "99.0")


def test_importing_arml_imports_none_of_this():
    code = (
        "import sys, time, torch, numpy\nstart = time.process_time()\nimport arml\n"
        "print(time.process_time() - start)\nprint(*sorted(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=Path.cwd())
    seconds, modules = ran.stdout.splitlines()
    assert not set(SLOW_PACKAGES) & set(modules.split())
    assert not [name for name in modules.split() if name.startswith(("arml.recorder", "arml.sampling", "arml.lab"))]
    assert float(seconds) < 0.3
