"""Learning from several domains, as a user types it."""

import json

import numpy as np
import pytest
import torch
from cli.typed import arml
from PIL import Image

from arml.cli.domains import DATASETS, LEARNERS, build, completed, prepare
from arml.lab.data.cache import report_nothing
from arml.lab.experiments.domain_runs import Table, cpu, paper
from arml.lab.run import Domains
from arml.lab.train import descend, losses_of, train

QUICK = ["--steps", "6", "--batch-source", "8", "--evaluate-every", "3", "--record-every", "3"]


@pytest.fixture
def folders(tmp_path):
    """Three domains with the classes dark and light, 10 images each."""
    draw = np.random.default_rng(0)
    for domain in ("clay", "ink", "oil"):
        for name, low in (("dark", 0), ("light", 150)):
            folder = tmp_path / "shades" / domain / name
            folder.mkdir(parents=True)
            for number in range(10):
                Image.fromarray(draw.integers(low, low + 100, (20, 20, 3)).astype(np.uint8)).save(
                    folder / f"{number}.png"
                )
    return tmp_path / "shades"


def test_folders_of_ones_own_work_with_one_command(folders, tmp_path):
    words = ["train", "dg", "--folders", str(folders), "--target", "ink", "--shots", "2", *QUICK]
    done = arml(*words, "--image-size", "16", "--out", str(tmp_path / "runs"))
    assert done.returncode == 0, done.stderr
    assert "weights clay" in done.stdout
    assert list((tmp_path / "runs").glob("shades_*-ink-2-jt-arml-0-*/record.jsonl"))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--target", "chalk"], "shades has no domain 'chalk'. It has: clay, ink, oil"),
        ([], "needs --folders FOLDER and --target DOMAIN"),
        (["--target", "ink", "--dataset", "pacs"], "and no --dataset"),
        (["--target", "ink", "--shots", "50"], "ink has 9 training images of dark; 50 shots of each class were asked"),
        (["--target", "ink", "--shots", "-1"], "`shots` should be at least 0. Got -1"),
        (["--target", "ink", "--leave-out", "ink"], "is the target and cannot be left out"),
        (["--target", "ink", "--leave-out", "clay", "oil"], "No source is left"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(folders, tmp_path, more, message):
    failed = arml("train", "dg", "--folders", str(folders), *more, *QUICK, "--out", str(tmp_path / "runs"))
    assert failed.returncode == 1
    assert message in " ".join(failed.stderr.split())
    assert "Traceback" not in failed.stderr


def test_every_learner_and_data_set_becomes_an_object_that_trains(tmp_path):
    for learner in LEARNERS:
        run = completed(Domains(learner=learner, network="plain-16", batch_source=4, steps=4))
        parts = build(run, tmp_path, tmp_path)
        assert (parts.reweighter is None) == (learner in ("main_only", "dsam"))
        for step in range(4):
            descend(parts, losses_of(parts, step).joint)
        assert 0 <= parts.test(parts.network.eval())["error"] <= 100
    assert set(DATASETS) == {"digits", "digits_misleading", "pacs", "folders"}


def test_equal_weights_are_the_loss_of_the_pooled_sources(tmp_path):
    parts = build(Domains(learner="baseline", method="uniform", network="plain-16"), tmp_path, tmp_path)
    losses = losses_of(parts, 0)
    assert losses.main is None, "the target's images are not even looked at"
    torch.testing.assert_close(losses.joint, torch.stack(list(losses.aux.values())).mean())
    joint = build(Domains(learner="jt", method="uniform", network="plain-16"), tmp_path, tmp_path)
    losses = losses_of(joint, 0)
    torch.testing.assert_close(losses.joint, losses.main + torch.stack(list(losses.aux.values())).mean())


def test_shots_are_no_test_images_and_more_of_them_are(folders, tmp_path):
    run = Domains(dataset="folders", folders=str(folders), target="ink", network="plain-16", image_size=16, shots=3)
    parts = build(run, tmp_path, tmp_path)
    assert len(parts.batches.samplers["target"].pool) == 6
    everything = build(Domains(**{**vars(run), "shots": "all"}), tmp_path, tmp_path)
    assert len(everything.batches.samplers["target"].pool) == 18
    none = build(Domains(**{**vars(run), "shots": 0}), tmp_path, tmp_path)
    assert "target" not in none.batches.samplers
    assert losses_of(none, 0).main is None


def test_a_source_may_be_called_target(folders, tmp_path):
    (folders / "oil").rename(folders / "target")
    run = Domains(dataset="folders", folders=str(folders), target="ink", network="plain-16", image_size=16, shots=1)
    batches = build(run, tmp_path, tmp_path).batches
    assert list(batches.next().sources) == ["clay", "target"]
    assert len(batches.sources["target"].sampler.pool) == 18
    assert len(batches.target.sampler.pool) == 2
    again = build(run, tmp_path, tmp_path).batches
    again.load_state_dict(batches.state_dict())
    assert torch.equal(again.next().sources["target"][0], batches.next().sources["target"][0])


def test_learners_that_use_no_target_label_see_no_target_image(tmp_path):
    for learner, method, seen in (("baseline", "uniform", 0), ("baseline", "arml", 20), ("jt", "uniform", 20)):
        parts = build(Domains(learner=learner, method=method, network="plain-16"), tmp_path, tmp_path)
        assert len(parts.batches.next().y) == seen


def test_without_shots_nothing_is_reweighted():
    assert completed(Domains(shots=0, method="arml")).method == "uniform"
    runs = Table(shot_counts=(0, 1), learners=("jt",), methods=("uniform", "arml")).runs(Domains(), seeds=1)
    assert [(run.shots, run.method) for run in runs] == [(0, "uniform"), (1, "uniform"), (1, "arml")]


def test_changed_folders_and_runs_inside_them(folders, tmp_path):
    run = Domains(dataset="folders", folders=str(folders), target="ink", image_size=16)
    before = completed(run)
    (folders / "ink" / "dark" / "0.png").unlink()
    assert completed(run).subject() != before.subject()
    with pytest.raises(ValueError, match=r"--out is inside .*shades"):
        prepare(run, tmp_path, folders / "runs" / "cache", report_nothing)


def test_a_source_that_cannot_be_validated_is_refused(folders, tmp_path):
    for path in [*(folders / "oil" / "dark").iterdir()][1:] + [*(folders / "oil" / "light").iterdir()][1:]:
        path.unlink()
    run = Domains(dataset="folders", folders=str(folders), target="ink", image_size=16)
    with pytest.raises(ValueError, match="oil has too few images"):
        prepare(run, tmp_path, tmp_path / "cache", report_nothing)


def test_from_nothing_is_said_where_the_paper_starts_from_imagenet(folders, tmp_path):
    run = Domains(dataset="folders", folders=str(folders), target="ink", image_size=32, network="resnet18")
    with pytest.warns(UserWarning, match="starts from nothing"):
        prepare(run, tmp_path, tmp_path / "cache", report_nothing)


def test_the_last_network_is_tested_unless_sources_choose(tmp_path):
    assert build(Domains(network="plain-16"), tmp_path, tmp_path).score is None
    chosen = build(Domains(network="plain-16", select="sources"), tmp_path, tmp_path)
    assert chosen.score({"error": 3.0}) == 3.0


def test_fada_is_not_chosen_before_it_adapts(tmp_path, monkeypatch):
    run = Domains(learner="fada", network="plain-16", batch_source=4, select="sources", steps=4, evaluate_every=1)
    parts, errors = build(run, tmp_path, tmp_path), iter([1.0, 2.0, 5.0, 4.0])
    monkeypatch.setattr(parts, "validation", lambda _: {"error": next(errors)})
    assert train(run, parts, tmp_path / "run")["step"] == 4, "steps 1 and 2 prepare, 3 and 4 adapt"


def test_learners_that_are_not_reweighted_have_equal_weights():
    assert completed(Domains(learner="shape_bias", method="arml")).method == "uniform"
    assert completed(Domains(learner="jigen", method="arml")).method == "arml"


def test_a_compare_has_a_line_for_the_oracle(tmp_path):
    words = [
        "compare",
        "dg",
        *QUICK,
        "--seeds",
        "1",
        "--workers",
        "1",
        "--learners",
        "main_only",
        "jt",
        "--methods",
        "uniform",
        "arml",
    ]
    done = arml(*words, "--without", "misleading", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    table = json.loads((tmp_path / "compare-dg-digits.json").read_text())
    lines = [tuple(row["line"].values()) for row in table]
    assert lines == [
        ("main_only", "", ""),
        ("jt", "uniform", ""),
        ("jt", "uniform", "without misleading"),
        ("jt", "arml", ""),
    ]
    assert list(table[2]["weights"]) == ["mnist5k", "inverted", "turned"]


def test_the_runs_of_a_table():
    table = Table(targets=("sketch", "photo"), shot_counts=(1, 5), methods=("uniform", "arml", "gradnorm"))
    runs = table.runs(cpu("pacs"), seeds=2)
    assert len(runs) == len({run.name() for run in runs}) == 2 * 2 * 2 * (3 + 3 * 2 + 3)


def test_the_paper_preset_is_the_papers_protocol():
    run = paper("pacs")
    assert (run.network, run.optimizer, run.lr, run.weight_decay) == ("resnet18", "sgd", 0.001, 5e-4)
    assert 3 * run.batch_source == 126
    assert run.lr * run.lr_drop == pytest.approx(0.0001)
    assert run.lr_drop_at == (0.8,)
    assert run.select == "sources"


def test_an_unknown_source_to_leave_out_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no domain 'mislead'"):
        prepare(Domains(leave_out=("mislead",)), tmp_path, tmp_path, report_nothing)
