"""Many runs: side by side, finished ones skipped, failing and killed ones reported."""

import os
import signal
import time
from pathlib import Path

import torch

from arml.lab.run import Run
from arml.lab.run_kinds import SemiSupervised
from arml.lab.sweep import run_all

RUNS = [SemiSupervised(seed=seed) for seed in range(4)]


def succeed(run: Run, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "threads").write_text(str(torch.get_num_threads()))
    (folder / "done").touch()


def fail_on_one(run: Run, folder: Path) -> None:
    if run.seed == 1:
        raise RuntimeError("seed one does not like it here")
    succeed(run, folder)


def die_on_zero(run: Run, folder: Path) -> None:
    if run.seed == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.2)
    succeed(run, folder)


def test_every_run_has_one_thread_and_finished_ones_are_skipped(tmp_path):
    outcomes = run_all(RUNS, tmp_path, work=succeed, workers=2)
    assert {o.run.seed: o.failure for o in outcomes} == dict.fromkeys(range(4))
    assert {(o.folder / "threads").read_text() for o in outcomes} == {"1"}
    again = run_all(RUNS, tmp_path, work=fail_on_one, workers=2)
    assert [o.failure for o in again] == [None] * 4


def test_a_failing_run_is_reported_and_the_rest_goes_on(tmp_path):
    watched = []
    outcomes = run_all(RUNS, tmp_path, work=fail_on_one, workers=2, watch=watched.append)
    failures = {o.run.seed: o.failure for o in outcomes if o.failure}
    assert set(failures) == {1}
    assert "RuntimeError: seed one does not like it here" in failures[1]
    assert len(watched) == 4


def test_a_killed_process_does_not_take_the_rest_with_it(tmp_path):
    outcomes = run_all(RUNS, tmp_path, work=die_on_zero, workers=1)
    failures = {o.run.seed: o.failure for o in outcomes if o.failure}
    assert set(failures) == {0}
    assert "killed from outside" in failures[0]
    assert len(outcomes) == 4
