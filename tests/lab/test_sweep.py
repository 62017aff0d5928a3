"""Many runs: side by side, finished ones skipped, failing and killed ones reported."""

import os
import signal
import time
from collections import Counter
from pathlib import Path

import torch

from arml.lab.engines import Ended, Job
from arml.lab.engines.base import attempt
from arml.lab.folder_lock import HeldError
from arml.lab.run import Run
from arml.lab.run_folder import mark_done
from arml.lab.run_kinds import SemiSupervised
from arml.lab.stopping import Stop
from arml.lab.sweep import run_all

RUNS = [SemiSupervised(seed=seed) for seed in range(4)]


def complete(folder: Path) -> None:
    (folder / "record.jsonl").write_text("{}\n")
    mark_done(folder)


def succeed(run: Run, folder: Path, stop: Stop) -> None:
    folder.mkdir(parents=True)
    (folder / "threads").write_text(str(torch.get_num_threads()))
    complete(folder)


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
    outcomes = run_all(RUNS, tmp_path, work=fail_on_one, workers=1, watch=watched.append)
    failures = {o.run.seed: o.failure for o in outcomes if o.failure}
    assert set(failures) == {1}
    assert "RuntimeError: seed one does not like it here" in failures[1]
    assert len(watched) == 4


def test_the_reason_of_a_failure_goes_to_no_other_file_and_goes_away_with_the_failure(tmp_path):
    folder = tmp_path / RUNS[1].name()
    folder.mkdir()
    (tmp_path / "precious").write_text("mine")
    (folder / "failure.txt").symlink_to(tmp_path / "precious")
    run_all(RUNS[1:2], tmp_path, work=fail_on_one, workers=1)
    assert (tmp_path / "precious").read_text() == "mine"
    assert "seed one does not like it here" in (folder / "failure.txt").read_text()
    run_all(RUNS[1:2], tmp_path, work=complete_in_place, workers=1)
    assert not (folder / "failure.txt").exists(), "a reason that is no longer true"


def complete_in_place(run: Run, folder: Path, stop: Stop) -> None:
    complete(folder)


def die_once(run: Run, folder: Path, stop: Stop) -> None:
    """Seed 0 is killed the first time, while a neighbour is at work."""
    folder.mkdir(parents=True, exist_ok=True)
    first = not (folder / "tried").exists()
    (folder / "tried").touch()
    if run.seed == 0 and first:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.5)
    complete(folder)


def test_only_the_run_of_a_killed_process_is_affected_and_it_is_tried_once_more(tmp_path):
    notes = []
    outcomes = run_all(RUNS[:2], tmp_path, work=die_once, workers=2, note=notes.append)
    assert [outcome.failure for outcome in outcomes] == [None, None]
    (note,) = notes
    assert note.startswith(f"trying again from its checkpoint: {RUNS[0].name()}: its process was killed (signal 9")


class Scripted:
    """An engine that ends jobs as a script says: one word per attempt, by seed."""

    attempts = 3

    def __init__(self, script: dict[int, list[str]]) -> None:
        self.script, self.jobs, self.submitted = script, [], []

    def start(self, work):
        return self

    def has_room(self):
        return not self.jobs

    def submit(self, job):
        self.jobs.append(job)
        self.submitted.append(job.run.seed)

    def poll(self, seconds):
        jobs, self.jobs = self.jobs, []
        return [Ended(job, self.script[job.run.seed].pop(0), "the reason") for job in jobs]

    def stop(self, seconds):
        raise AssertionError("nobody asked")

    def close(self):
        self.closed = True


def test_a_run_whose_process_keeps_dying_is_given_up(tmp_path):
    engine, notes = Scripted({0: ["lost"] * 3, 1: ["lost", "done"], 2: ["failed"], 3: ["done"]}), []
    outcomes = {o.run.seed: o.failure for o in run_all(RUNS, tmp_path, engine=engine, note=notes.append)}
    given_up = "Given up after 3 attempts: the reason."
    assert outcomes == {0: given_up, 1: None, 2: "the reason", 3: None}
    assert (tmp_path / RUNS[0].name() / "failure.txt").read_text() == given_up
    assert Counter(engine.submitted) == {0: 3, 1: 2, 2: 1, 3: 1}
    assert len(notes) == 3, "a run that fails by itself is not tried again"
    assert engine.closed


def test_a_run_that_somebody_else_trains_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr("arml.lab.sweep.TRY_AGAIN", 0.01)
    engine, notes = Scripted({0: ["held", "held", "done"], 1: ["done"], 2: ["done"], 3: ["done"]}), []
    outcomes = run_all(RUNS, tmp_path, engine=engine, note=notes.append)
    assert [o.failure for o in outcomes] == [None] * 4
    assert engine.submitted[:2] == [0, 1], "others come first"
    assert notes == ["waiting: the reason"], "said once"


def test_a_held_folder_is_no_failure(tmp_path):
    def find_it_held(run, folder, stop):
        raise HeldError("process 1 has it")

    job = Job(RUNS[0], tmp_path)
    assert attempt(find_it_held, job, Stop()) == Ended(job, "held", "process 1 has it")
