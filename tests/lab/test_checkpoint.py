"""Checkpoint, record and ``done`` know each other: what does not fit together is refused, never mixed."""

import json
import os
import random
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from lab.parts import make

from arml.lab.checkpoint import CheckpointError, read_checkpoint, write_checkpoint
from arml.lab.folder_lock import lock_folder
from arml.lab.run_folder import Prefix, is_done, measure_prefix
from arml.lab.run_kinds import MultiLabel
from arml.lab.stopping import Stop, Stopped, stop_on_signals
from arml.lab.train import train

RUN = MultiLabel(
    network="mlp-8",
    batch_main=8,
    batch_aux=8,
    steps=12,
    evaluate_every=4,
    record_every=2,
    checkpoint_every=3,
    method="arml",
)
NEWEST, PREVIOUS = "checkpoint.pt", "checkpoint.previous.pt"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The record of a run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    train(RUN, make(RUN, folder), folder / "run")
    return (folder / "run" / "record.jsonl").read_bytes()


def train_until(step: int, folder: Path, *, resume: bool = True, run: MultiLabel = RUN) -> None:
    """Trains and breaks off after ``step``, as a crash does: the record has lines that no checkpoint knows."""
    parts, count = make(run, folder), [0]
    after_step = parts.learner.after_step

    def crash(network):
        after_step(network)
        count[0] += 1
        if count[0] == step:
            raise InterruptedError("the machine crashed")

    parts.learner.after_step = crash
    with pytest.raises(InterruptedError):
        train(run, parts, folder, resume=resume)


def finish(folder: Path) -> bytes:
    train(RUN, make(RUN, folder), folder, resume=True)
    return (folder / "record.jsonl").read_bytes()


def test_a_fresh_start_leaves_no_checkpoint_of_the_old_one(tmp_path, whole):
    """Killed, started again without --resume, killed before the first checkpoint, resumed: nothing is lost."""
    train_until(10, tmp_path)
    train_until(1, tmp_path, resume=False)
    assert finish(tmp_path) == whole
    assert is_done(tmp_path)


def test_a_checkpoint_that_meets_another_record_is_an_error_that_says_what_to_do(tmp_path):
    train_until(10, tmp_path)
    record = tmp_path / "record.jsonl"
    written = record.read_bytes()
    record.write_bytes(written[:50])
    with pytest.raises(ValueError, match=r"had \d+ bytes; now it has 50.* remove the folder"):
        finish(tmp_path)
    assert record.read_bytes() == written[:50], "what is there is left alone"
    record.write_bytes(written.replace(b"0", b"1"))
    with pytest.raises(ValueError, match=r"does not belong to .* remove the folder"):
        finish(tmp_path)
    assert not is_done(tmp_path)


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    train_until(10, tmp_path, run=replace(RUN, seed=1))
    with pytest.raises(CheckpointError, match=r"belongs to the run yeast.*, not to yeast"):
        finish(tmp_path)


def test_a_damaged_checkpoint_gives_way_to_the_one_before(tmp_path, whole):
    train_until(10, tmp_path)
    path = tmp_path / NEWEST
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.warns(UserWarning, match=r"checkpoint.pt is damaged: .* Continuing from checkpoint.previous.pt"):
        assert finish(tmp_path) == whole
    assert not (tmp_path / PREVIOUS).exists(), "a finished run needs no spare one"


def test_a_crash_between_two_renames_leaves_the_checkpoint_before(tmp_path, whole):
    train_until(10, tmp_path)
    (tmp_path / NEWEST).unlink()
    assert finish(tmp_path) == whole


def test_two_damaged_checkpoints_are_one_clear_error(tmp_path):
    train_until(10, tmp_path)
    for name in (NEWEST, PREVIOUS):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"checkpoint.pt is damaged.*previous.pt is damaged.*remove the folder"):
        finish(tmp_path)


def test_no_damage_to_a_checkpoint_goes_unnoticed(tmp_path):
    """Flipped bits, cuts and foreign files: each is refused with the same kind of error."""
    train_until(4, tmp_path)
    path, draw = tmp_path / NEWEST, random.Random(0)
    good = path.read_bytes()
    damaged = [good[: draw.randrange(len(good))] for _ in range(10)]
    damaged += [b"PK\x03\x04" + good, b"", b"\0" * 500, b"arml-checkpoint 9\n" + good, good[1:], good + b"\0"]
    for place in [*range(120), *(draw.randrange(len(good)) for _ in range(40))]:
        flipped = bytearray(good)
        flipped[place] ^= 1 << draw.randrange(8)
        damaged.append(bytes(flipped))
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(CheckpointError):
            read_checkpoint(tmp_path, RUN.name())
    path.write_bytes(good)
    found = read_checkpoint(tmp_path, RUN.name())
    assert found is not None
    assert found.state["progress"]["step"] == 3


def test_checkpoints_of_other_versions_are_named(tmp_path):
    for content, said in [
        (b"PK\x03\x04", "arml 0.1"),
        (b"arml-checkpoint 3\n", "version 3; this arml reads version 2"),
    ]:
        (tmp_path / NEWEST).write_bytes(content)
        with pytest.raises(CheckpointError, match=said):
            read_checkpoint(tmp_path, RUN.name())


def test_done_names_the_record_and_counts_only_with_it(tmp_path, whole):
    assert finish(tmp_path) == whole
    marked = json.loads((tmp_path / "done").read_text())
    assert Prefix(**marked) == measure_prefix(tmp_path / "record.jsonl")
    assert marked["length"] == len(whole)
    for changed in (whole[:-1], whole + b"\0", whole.replace(b"0", b"1")):
        (tmp_path / "record.jsonl").write_bytes(changed)
        assert not is_done(tmp_path)


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"null\n", b"{", b'{"length": 1}', b"[" * 9999, b"\0" * 98])
def test_a_damaged_mark_does_not_count_and_the_run_is_completed_again(tmp_path, whole, mark):
    assert finish(tmp_path) == whole
    (tmp_path / "done").write_bytes(mark)
    assert not is_done(tmp_path)
    assert finish(tmp_path) == whole
    assert is_done(tmp_path)


def test_the_empty_marks_of_version_0_1_count_with_a_record_that_ends_in_a_result(tmp_path, whole):
    (tmp_path / "done").touch()
    assert not is_done(tmp_path), "there is no record"
    for content, complete in ((whole, True), (whole[:-1], False), (whole[:1000], False), (whole + b"\0\0", False)):
        (tmp_path / "record.jsonl").write_bytes(content)
        assert is_done(tmp_path) == complete


@pytest.mark.parametrize("after", [1, 8])
def test_a_stop_writes_a_checkpoint_and_the_run_continues_exactly(tmp_path, whole, after):
    parts, stop, steps = make(RUN, tmp_path), Stop(), []
    after_step = parts.learner.after_step

    def ask(network):
        after_step(network)
        steps.append(1)
        if len(steps) == after:
            stop.ask(signal.SIGTERM)

    parts.learner.after_step = ask
    with pytest.raises(Stopped, match=f"stopped after step {after} of 12") as stopped:
        train(RUN, parts, tmp_path, stop=stop)
    assert stopped.value.exit_code == 143
    assert not is_done(tmp_path)
    assert finish(tmp_path) == whole


def test_the_first_signal_asks_and_the_second_interrupts():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with stop_on_signals() as stop:
        assert not stop
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.reason == signal.SIGINT
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.reason == signal.SIGINT, "the first reason counts"
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_files_that_links_point_to_are_left_alone(tmp_path):
    outside = tmp_path / "precious"
    outside.write_text("mine")
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("record.jsonl", "checkpoint.pt.part", "done.part", "lock.json"):
        (folder / name).symlink_to(outside)
    with lock_folder(folder):
        train(RUN, make(RUN, folder), folder)
    assert outside.read_text() == "mine"
    assert is_done(folder)


def test_a_record_that_is_a_link_is_not_continued(tmp_path):
    train_until(8, tmp_path)
    outside = (tmp_path / "record.jsonl").rename(tmp_path / "precious")
    (tmp_path / "record.jsonl").symlink_to(outside)
    before = outside.read_bytes()
    with pytest.raises(CheckpointError, match=r"record\.jsonl is a link.*remove the folder"):
        finish(tmp_path)
    assert outside.read_bytes() == before


def test_a_network_of_another_version_is_not_continued(tmp_path):
    """Layers are called otherwise or have another shape: a sentence, not PyTorch's list of keys."""
    train_until(8, tmp_path)
    found = read_checkpoint(tmp_path, RUN.name())
    network = found.state["network"]
    renamed = {f"old.{key}": value for key, value in network.items()}
    enlarged = {key: value.repeat_interleave(2, 0) for key, value in network.items()}
    for other in (renamed, enlarged):
        write_checkpoint(tmp_path, found._replace(state={**found.state, "network": other}))
        with pytest.raises(CheckpointError, match=r"another version of arml.*network.*remove the folder") as refused:
            finish(tmp_path)
        assert len(str(refused.value)) < 400
