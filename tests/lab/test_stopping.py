"""Ctrl-C, SIGTERM and the death of the parent: training ends within seconds, with checkpoints, and goes on exactly."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from cli.typed import arml

from arml.lab.experiments.multi_label_runs import cpu
from arml.lab.folder_lock import HeldError, lock_folder
from arml.lab.launch import train_run
from arml.lab.run_folder import is_done
from arml.lab.stopping import Stopped
from arml.lab.sweep import run_all

LONG = 1_000_000
RUN = replace(cpu("yeast"), network="mlp-8", batch_main=8, batch_aux=8, method="uniform", record_every=5)
RUN = replace(RUN, steps=LONG, evaluate_every=LONG, checkpoint_every=LONG)
WORDS = ["--network", "mlp-8", "--batch-main", "8", "--batch-aux", "8", "--method", "uniform", "--record-every", "5"]
WORDS += ["--evaluate-every", str(LONG), "--checkpoint-every", str(LONG)]


def wait_until(happened, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def is_training(root: Path) -> bool:
    return any(path.read_bytes().count(b"\n") > 3 for path in root.glob("*/record.jsonl"))


@contextmanager
def send_once_training(number: int, root: Path):
    """Sends this process a signal as soon as a run below ``root`` has taken some steps; yields when it was sent."""
    sent: list[float] = []

    def send():
        wait_until(lambda: is_training(root))
        sent.append(time.monotonic())
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=send)
    thread.start()
    yield sent
    thread.join()


def test_a_sweep_stops_within_seconds_and_keeps_checkpoints(tmp_path):
    runs = [replace(RUN, seed=seed) for seed in range(3)]
    with send_once_training(signal.SIGTERM, tmp_path) as sent, pytest.raises(Stopped, match="0 of 3 runs") as stopped:
        run_all(runs, tmp_path, workers=1)
    assert time.monotonic() - sent[0] < 10
    assert stopped.value.exit_code == 143
    begun = [path.parent for path in tmp_path.glob("*/record.jsonl")]
    assert len(begun) == 1, "runs that had not begun do not begin"
    assert (begun[0] / "checkpoint.pt").exists()
    assert not is_done(begun[0])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_train_stops_with_a_checkpoint_and_resumes_to_the_same_record(tmp_path, number, code):
    out = ["--out", str(tmp_path), "--steps", "40000"]
    with send_once_training(number, tmp_path):
        stopped = arml("train", "mlc", *WORDS, *out)
    assert stopped.returncode == code
    assert "stopped after step" in stopped.stderr
    assert "with a checkpoint in" in stopped.stderr
    assert "--resume" in stopped.stderr
    (path,) = tmp_path.glob("*/checkpoint.pt")
    assert not is_done(path.parent)


def test_sigterm_before_and_after_training_ends_a_command_like_ctrl_c(tmp_path, monkeypatch):
    def load_for_ever(*args, **kwargs):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)

    monkeypatch.setattr("arml.cli.train.build", load_for_ever)
    stopped = arml("train", "mlc", *WORDS, "--out", str(tmp_path))
    assert stopped.returncode == 143
    assert "stopped by SIGTERM. Finished work is kept" in " ".join(stopped.stderr.split())
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


SWEEP = """
import sys
from pathlib import Path
from test_stopping import RUN
from arml.lab.sweep import run_all
if __name__ == "__main__":
    run_all([RUN], Path(sys.argv[1]), workers=1)
"""


def test_workers_end_when_their_parent_is_gone(tmp_path):
    script = tmp_path / "sweep.py"
    script.write_text(SWEEP)
    here = Path(__file__).parent
    places = os.pathsep.join([str(here), str(here.parent), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen([sys.executable, script, tmp_path], env={**os.environ, "PYTHONPATH": places}) as parent:
        try:
            wait_until(lambda: is_training(tmp_path))
            (holder,) = tmp_path.glob("*/lock.json")
            worker = json.loads(holder.read_text())["process"]
            assert worker != parent.pid
        finally:
            parent.kill()
    wait_until(lambda: not Path(f"/proc/{worker}").exists(), seconds=20)
    assert (holder.parent / "checkpoint.pt").exists(), "its last words"


def test_two_commands_at_once_do_not_touch_each_others_runs(tmp_path):
    run = replace(RUN, steps=20)
    folder = tmp_path / run.name()
    with lock_folder(folder):
        with pytest.raises(HeldError, match=rf"in use by process {os.getpid()} on .* since 20.* Wait until it ends"):
            train_run(run, tmp_path)
        refused = arml("train", "mlc", *WORDS, "--steps", "20", "--out", str(tmp_path))
    assert refused.returncode == 1
    assert f"in use by process {os.getpid()}" in refused.stderr
    assert not (folder / "record.jsonl").exists()


def test_a_lock_ends_with_its_holder(tmp_path):
    code = "import sys, time; from pathlib import Path; from arml.lab.folder_lock import lock_folder\n"
    code += "with lock_folder(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(HeldError, match=f"process {holder.pid}"), lock_folder(tmp_path):
            pass
        holder.kill()
    with lock_folder(tmp_path):
        assert json.loads((tmp_path / "lock.json").read_text())["process"] == os.getpid()
    assert not (tmp_path / "lock.json").exists()
