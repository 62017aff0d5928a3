"""Many runs: side by side, finished ones skipped, failing and killed ones reported."""

import os
import signal
import time
from pathlib import Path

import torch

from arml.lab.folder_lock import HeldError
from arml.lab.run import Run
from arml.lab.run_kinds import SemiSupervised
from arml.lab.stopping import Stop
from arml.lab.sweep import run_all

RUNS = [SemiSupervised(seed=seed) for seed in range(4)]


def succeed(run: Run, folder: Path, stop: Stop) -> None:
    folder.mkdir(parents=True)
    (folder / "threads").write_text(str(torch.get_num_threads()))
    (folder / "done").touch()


def fail_on_one(run: Run, folder: Path, stop: Stop) -> None:
    if run.seed == 1:
        raise RuntimeError("seed one does not like it here")
    succeed(run, folder, stop)


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


def die_once(run: Run, folder: Path, stop: Stop) -> None:
    """Seed 0 is killed the first time, seed 1 every time, while neighbours are at work."""
    folder.mkdir(parents=True, exist_ok=True)
    first = not (folder / "tried").exists()
    (folder / "tried").touch()
    time.sleep(0.2)
    if run.seed == 1 or (run.seed == 0 and first):
        os.kill(os.getpid(), signal.SIGKILL)
    (folder / "done").touch()


def test_only_the_run_of_a_killed_process_is_affected_and_it_is_tried_once_more(tmp_path):
    notes, outcomes = [], {}
    for outcome in run_all(RUNS, tmp_path, work=die_once, workers=2, note=notes.append):
        outcomes[outcome.run.seed] = outcome.failure
    assert {seed for seed, failure in outcomes.items() if failure is not None} == {1}
    assert "Given up after 2 attempts: its process was killed (signal 9" in outcomes[1]
    assert (tmp_path / RUNS[1].name() / "failure.txt").read_text() == outcomes[1]
    assert sorted(note.split(": ")[1] for note in notes) == sorted(run.name() for run in RUNS[:2])


def hold_out(run: Run, folder: Path, stop: Stop) -> None:
    """Somebody else has the folder at first."""
    tried = folder / "tried"
    if run.seed == 0 and not tried.exists():
        folder.mkdir(parents=True)
        tried.touch()
        raise HeldError(f"{folder} is in use by process 1 on elsewhere")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "done").touch()


def test_a_run_that_somebody_else_trains_is_waited_for(tmp_path):
    notes = []
    outcomes = run_all(RUNS, tmp_path, work=hold_out, workers=1, note=notes.append)
    assert [o.failure for o in outcomes] == [None] * 4
    assert outcomes[-1].run.seed == 0, "the others come first"
    (note,) = notes
    assert "in use by process 1 on elsewhere" in note
