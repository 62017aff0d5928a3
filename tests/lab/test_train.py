"""The loop: what it records, what it chooses by, and that a killed run goes on exactly."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from arml.lab.build import Folders, build
from arml.lab.run import Run
from arml.lab.run_folder import is_done
from arml.lab.run_kinds import Domains, MultiLabel, SemiSupervised
from arml.lab.trace import Trace, read, result
from arml.lab.train import Parts, TrainingState, error_rate, outputs_of, train

OFTEN = {"steps": 12, "evaluate_every": 4, "record_every": 2, "checkpoint_every": 3}
TINY = SemiSupervised(batch_labelled=8, batch_unlabelled=8, **OFTEN)
ATTRIBUTES = MultiLabel(network="mlp-16", batch_main=8, batch_aux=8, dropout=0.3, **OFTEN)


def made(run: Run, folder: Path) -> Parts:
    return build(run, Folders(Path("data"), folder / "cache"))


def test_the_record_holds_what_a_report_needs(tmp_path):
    outcome = train(TINY, made(TINY, tmp_path), tmp_path / "run")
    run, records, where = read(tmp_path / "run" / "record.jsonl")
    assert run == TINY
    assert where["torch"] == torch.__version__
    assert result(records) == outcome
    steps = [r["step"] for r in records if "losses" in r]
    assert steps == [2, 4, 6, 8, 10, 12]
    first = records[0]
    assert set(first["losses"]) == {"main", "rotation", "exemplar"}
    assert set(first["weights"]) == set(first["agreement"]) == {"rotation", "exemplar"}
    assert [r["step"] for r in records if set(r) == {"step", "validation_error"}] == [4, 8, 12]
    assert is_done(tmp_path / "run")
    assert list((tmp_path / "run" / "tensorboard").glob("events*"))


def test_the_network_is_chosen_by_validation_and_tested_once(tmp_path, monkeypatch):
    parts = made(TINY, tmp_path)
    looked_at = []
    errors = iter([30.0, 10.0, 20.0, 99.0, 98.0])

    def look(examples):
        def evaluate(network):
            assert not network.training
            looked_at.append(examples)
            return {"error": next(errors)}

        return evaluate

    monkeypatch.setattr(parts, "validation", look("validation"))
    monkeypatch.setattr(parts, "test", look("test"))
    outcome = train(TINY, parts, tmp_path / "run")
    assert looked_at == ["validation"] * 3 + ["test", "test"]
    assert (outcome["step"], outcome["validation_error"]) == (8, 10.0)
    assert (outcome["test_error_last"], outcome["test_error"]) == (99.0, 98.0)


def test_the_earliest_of_equally_good_networks_counts(tmp_path, monkeypatch):
    parts = made(TINY, tmp_path)
    monkeypatch.setattr(parts, "validation", lambda _: {"error": 5.0})
    assert train(TINY, parts, tmp_path / "run")["step"] == 4


def test_another_measure_may_choose(tmp_path, monkeypatch):
    parts, seen = made(ATTRIBUTES, tmp_path), iter([60.0, 80.0, 70.0])
    monkeypatch.setattr(parts, "validation", lambda _: {"error": 5.0, "average_precision": next(seen)})
    outcome = train(ATTRIBUTES, parts, tmp_path / "run")
    assert (outcome["step"], outcome["validation_average_precision"]) == (8, 80.0)
    assert {"test_average_precision", "test_auc", "test_majority_error"} <= set(outcome)


def test_the_step_size_falls_at_each_share(tmp_path, monkeypatch):
    run = replace(TINY, lr=1.0, lr_drop=0.1, lr_drop_at=(0.25, 0.5))
    parts, rates = made(run, tmp_path), []
    monkeypatch.setattr(parts.learner, "after_step", lambda _: rates.append(parts.optimizer.param_groups[0]["lr"]))
    train(run, parts, tmp_path / "run")
    assert rates == pytest.approx([1.0] * 3 + [0.1] * 3 + [0.01] * 6)


def test_error_rate_by_hand():
    class Sign(torch.nn.Module):
        def forward(self, x):
            return torch.stack([-x[:, 0, 0, 0], x[:, 0, 0, 0]], dim=1)

    from arml.lab.data import Images

    images = Images(torch.tensor([-1.0, 2.0, 3.0, -4.0]).view(4, 1, 1, 1), torch.tensor([0, 1, 0, 1]))
    assert error_rate(Sign(), images, lambda x: x) == 50.0


@pytest.mark.parametrize(
    ("example", "largest"),
    [((3, 32, 32), 500), ((3, 64, 64), 500), ((3, 128, 128), 128), ((3, 222, 222), 42), ((1, 3000, 3000), 1)],
)
def test_evaluation_takes_as_many_images_as_memory_allows(example, largest):
    sizes = []

    class Counting(torch.nn.Module):
        def forward(self, x):
            sizes.append(len(x))
            return torch.zeros(len(x), 2)

    count = 700 if largest > 1 else 3
    x, rows = torch.zeros(1, dtype=torch.uint8).expand(count, *example), torch.arange(count)
    assert len(outputs_of(Counting(), x, rows, lambda pixels: pixels)) == sum(sizes) == count
    assert max(sizes) == largest
    assert largest * 4 * x[0].numel() <= 24 * 2**20 or largest == 1


@pytest.mark.parametrize("method", ["arml", "arml_full", "gated_arml", "gradnorm"])
@pytest.mark.parametrize("crash_after", [4, 7])
@pytest.mark.parametrize("setting", [TINY, replace(ATTRIBUTES, optimizer="sgd")], ids=lambda run: run.setting)
def test_resuming_from_a_checkpoint_gives_the_same_bytes(tmp_path, monkeypatch, setting, method, crash_after):
    check_resuming(replace(setting, method=method, every=2), crash_after, tmp_path, monkeypatch)


@pytest.mark.parametrize("crash_after", [4, 7])
def test_resuming_two_branches_gives_the_same_bytes(tmp_path, monkeypatch, crash_after):
    run = replace(ATTRIBUTES, learner="forkmerge", method="uniform", checkpoint_every=2)
    check_resuming(run, crash_after, tmp_path, monkeypatch)


def check_resuming(run, crash_after, tmp_path, monkeypatch):
    train(run, made(run, tmp_path), tmp_path / "whole")

    parts, steps = made(run, tmp_path), []
    after_step = parts.learner.after_step

    def crash(network):
        after_step(network)
        steps.append(1)
        if len(steps) == crash_after:
            raise KeyboardInterrupt

    monkeypatch.setattr(parts.learner, "after_step", crash)
    with pytest.raises(KeyboardInterrupt):
        train(run, parts, tmp_path / "crashed")
    torch.manual_seed(999)
    train(run, made(run, tmp_path), tmp_path / "crashed", resume=True)
    whole, crashed = ((tmp_path / name / "record.jsonl").read_bytes() for name in ("whole", "crashed"))
    assert crashed == whole


def start(out: Path, *more: str) -> subprocess.Popen:
    words = ["train", "ssl", "--steps", "40", "--checkpoint-every", "4", "--record-every", "3", "--evaluate-every", "9"]
    words += ["--batch-labelled", "8", "--batch-unlabelled", "8", "--out", str(out), *more]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    with out.with_suffix(".log").open("w") as log:
        return subprocess.Popen([sys.executable, "-m", "arml", *words], env=environment, stdout=log, stderr=log)


@pytest.mark.long
def test_a_process_killed_at_random_moments_leaves_the_record_of_one_that_was_not(tmp_path):
    whole = start(tmp_path / "whole")
    (tmp_path / "killed").mkdir()
    draw, kills = random.Random(0), 0
    while kills < 3:
        process = start(tmp_path / "killed", "--resume")
        records = list((tmp_path / "killed").glob("*/record.jsonl"))
        seen = records[0].stat().st_size if records else 0
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:  # killed once it has written something new
            records = list((tmp_path / "killed").glob("*/record.jsonl"))
            if records and records[0].stat().st_size > seen:
                time.sleep(draw.uniform(0, 0.3))
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
    last = start(tmp_path / "killed", "--resume")
    assert last.wait(timeout=120) == 0, (tmp_path / "killed.log").read_text()
    assert whole.wait(timeout=120) == 0
    (killed,), (uninterrupted,) = ((tmp_path / name).glob("*/record.jsonl") for name in ("killed", "whole"))
    assert killed.read_bytes() == uninterrupted.read_bytes()


def test_a_checkpoint_is_whole_or_not_there(tmp_path, monkeypatch):
    """A crash while it is written leaves the one before."""
    parts, progress = made(TINY, tmp_path), TrainingState()
    with Trace(tmp_path / "record.jsonl", TINY) as trace:
        progress.save(tmp_path, parts, 3, trace)
    before = (tmp_path / "checkpoint.pt").read_bytes()

    def torn(state, file):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(torch, "save", torn)
    with Trace(tmp_path / "record.jsonl", TINY) as trace, pytest.raises(OSError, match="disk full"):
        progress.save(tmp_path, parts, 6, trace)
    assert (tmp_path / "checkpoint.pt").read_bytes() == before


def test_a_line_cut_off_by_a_crash_is_left_out(tmp_path):
    path = tmp_path / "record.jsonl"
    with Trace(path, TINY) as trace:
        trace.write({"step": 1})
    path.write_text(path.read_text() + '{"step": 2, "los')
    assert read(path).records == [{"step": 1}]
    path.write_text(json.dumps({"something": "else"}) + "\n")
    with pytest.raises(ValueError, match="is no record of a run"):
        read(path)


def test_names_of_runs_are_readable_and_differ():
    assert TINY.name().startswith("digits-50-s4l-arml-0-")
    assert TINY.name() != replace(TINY, aux_scale=0.5).name()
    assert TINY.name() == replace(TINY).name()
    assert "/" not in replace(ATTRIBUTES, main="a/b c").name()


@pytest.mark.parametrize(
    "run", [TINY, replace(ATTRIBUTES, aux=("Class2", "Class3"), labels=None), Domains(shots="all")]
)
def test_a_record_gives_back_the_run(tmp_path, run):
    with Trace(tmp_path / "record.jsonl", run):
        pass
    assert read(tmp_path / "record.jsonl").run == run
