"""Learning many targets, as a user types it."""

import csv
import json
import random

import pytest
from cli.typed import arml

from arml.cli.multi_label import build, completed, prepare
from arml.lab.data.cache import report_nothing
from arml.lab.experiments.multi_label_runs import Table, cpu, paper
from arml.lab.run import MultiLabel

QUICK = ["--steps", "6", "--batch-main", "8", "--batch-aux", "8", "--evaluate-every", "3", "--record-every", "3"]


@pytest.fixture
def table(tmp_path):
    """Whether the sum is positive is known for a third of the rows; what it is, and in which third, for most."""
    draw, path = random.Random(0), tmp_path / "patients.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["a", "b", "ward", "ill", "score", "third", "twin"])
        for number in range(120):
            a, b = draw.gauss(0, 1), draw.gauss(0, 1)
            known = ["yes" if a + b > 0 else "no"] if number % 3 == 0 else [""]
            third = "low" if a + b < -0.5 else "high" if a + b > 0.5 else "middle"
            rows.writerow([a, b, draw.choice("xyz"), *known, a + b if number % 5 else "", third, int(a > b)])
    return path


def test_a_table_of_ones_own_works_with_one_command(table, tmp_path):
    words = ["train", "mlc", "--table", str(table), "--main", "ill", "--aux", "score,third,twin"]
    done = arml(*words, *QUICK, "--out", str(tmp_path / "runs"))
    assert done.returncode == 0, done.stderr
    assert "test average precision" in done.stdout
    assert all(name in done.stdout for name in ("score", "third", "twin"))
    (record,) = (tmp_path / "runs").glob("patients_*-ill-inf-joint-arml-0-*/record.jsonl")
    first = json.loads(record.read_text().splitlines()[0])
    assert first["run"]["aux"] == ["score", "third", "twin"]
    # The same words on other rows are another run.
    table.write_text("\n".join(table.read_text().splitlines()[:-1]) + "\n")
    again = arml(*words, *QUICK, "--out", str(tmp_path / "runs"))
    assert "This run is complete" not in again.stdout
    assert len(list((tmp_path / "runs").glob("*/record.jsonl"))) == 2


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--main", "il", "--aux", "score"], "'il'"),
        (["--main", "ill"], "needs --aux COLUMN,COLUMN,..., or --learner main_only"),
        (["--aux", "score"], "needs --main COLUMN"),
        (["--main", "ill", "--aux", "score", "--dataset", "celeba"], "and no --dataset"),
        (["--main", "ill", "--aux", "score", "--network", "mlp-0"], "'mlp-0' is no network for rows of a table"),
        (["--main", "ill", "--aux", "score", "--evaluate-every", "0"], "`evaluate_every` should be at least 1. Got 0"),
        (["--main", "ill", "--aux", "score", "--lr", "-1"], "`lr` should be a positive number. Got -1"),
        (["--main", "ill", "--aux", "[/bold]"], "Unknown column '[/bold]'"),
        (["--main", "ill", "--aux", "ill"], "ill"),
        (["--main", "ill", "--aux", "score", "--network", "small-32"], "no network for rows of a table"),
        (["--main", "ill", "--aux", "score", "--method", "grid-1"], "two auxiliary tasks. Got 1: score"),
        (["--main", "ill", "--aux", "score", "--labels", "1000"], "at most"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(table, tmp_path, more, message):
    failed = arml("train", "mlc", "--table", str(table), *QUICK, *more, "--out", str(tmp_path / "runs"))
    assert failed.returncode == 1
    assert message in " ".join(failed.stderr.split())
    assert "Traceback" not in failed.stderr


def test_a_missing_table_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"no file nowhere\.csv"):
        completed(MultiLabel(dataset="table", table="nowhere.csv", main="a", aux=("b",)))
    with pytest.raises(ValueError, match="needs --table FILE"):
        completed(MultiLabel(dataset="table", main="a", aux=("b",)))


def test_numeric_and_many_valued_main_targets(table, tmp_path):
    for main, aux in (("score", "ill,third"), ("third", "ill,score")):
        run = completed(
            MultiLabel(dataset="table", table=str(table), main=main, aux=(aux,), network="mlp-16", labels=None)
        )
        parts = build(run, tmp_path, tmp_path)
        assert parts.learner.tasks == tuple(aux.split(","))
        found = parts.validation(parts.network.eval())
        assert ("rmse" in found) == (main == "score")
        assert parts.score(found) == (found["error"] if main == "score" else -found["average_precision"])


def test_a_compare_shows_all_measures_and_the_majority(tmp_path):
    words = [
        "compare",
        "mlc",
        *QUICK,
        "--seeds",
        "2",
        "--workers",
        "1",
        "--methods",
        "uniform",
        "arml",
        "--without",
        "Class2",
    ]
    done = arml(*words, "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.replace("│", " ").split())
    assert "Always answering the most frequent class" in text
    table = json.loads((tmp_path / "compare-mlc-yeast.json").read_text())
    assert [tuple(row["line"].values()) for row in table] == [
        ("main_only", "", ""),
        ("joint", "uniform", ""),
        ("joint", "uniform", "without Class2"),
        ("joint", "arml", ""),
    ]
    assert all({"error", "average_precision", "auc", "majority_error"} == set(row["metrics"]) for row in table)
    assert len(table[1]["weights"]) == 13
    assert "Class2" not in table[2]["weights"]


def test_unknown_targets_are_refused_before_any_run(tmp_path):
    failed = arml("compare", "mlc", "--mains", "Class1", "Class99", "--out", str(tmp_path))
    assert failed.returncode == 1
    assert "yeast has no target Class99. It has: Class1, Class2" in " ".join(failed.stderr.split())
    assert not list(tmp_path.glob("*/record.jsonl"))
    with pytest.raises(ValueError, match="No auxiliary target is left"):
        prepare(MultiLabel(aux=("Class2",), leave_out=("Class2",)), tmp_path, tmp_path, report_nothing)


def test_several_mains_of_a_table_are_no_features_of_each_other(table, tmp_path):
    base = completed(
        MultiLabel(dataset="table", table=str(table), aux=("twin",), main="", network="mlp-16", labels=None)
    )
    runs = Table(mains=("ill,third",), methods=("uniform",), main_only=False, without=("twin",)).runs(base, seeds=1)
    assert [(run.main, run.aux) for run in runs if not run.leave_out] == [
        ("ill", ("twin", "third")),
        ("third", ("twin", "ill")),
    ]
    for run in runs:
        assert build(run, tmp_path, tmp_path).batches.x.shape[1] == 2 + 1 + 3, "a, b, score and three wards"


def test_the_main_target_alone_needs_no_others(table, tmp_path):
    run = MultiLabel(dataset="table", table=str(table), main="ill", learner="main_only", network="mlp-16", labels=None)
    assert build(completed(run), tmp_path, tmp_path).reweighter is None


def test_a_changed_table_is_another_subject(table):
    run = MultiLabel(dataset="table", table=str(table), main="ill", aux=("twin",))
    before = completed(run).subject()
    table.write_text(table.read_text().replace("yes", "ja"))
    after = completed(run).subject()
    assert before.dataset.startswith("patients@")
    assert before != after


def test_long_names_still_name_a_folder(tmp_path):
    run = MultiLabel(main="ä" * 300, leave_out=tuple(f"target{n}" for n in range(40)))
    (tmp_path / run.name()).mkdir()
    assert run.name() != MultiLabel(main="ä" * 301, leave_out=run.leave_out).name()


def test_points_of_a_grid_are_compared_by_the_measure_that_chooses_networks():
    found = {"error": 10.0, "average_precision": 40.0}
    assert MultiLabel().score(found) == -40.0
    assert MultiLabel(select="error").score(found) == 10.0
    assert MultiLabel(select="auc").score({"error": 3.0}) == 3.0


def test_files_of_weights_are_told_apart(tmp_path):
    path = tmp_path / "w.pth"
    path.write_bytes(b"one")
    first = completed(MultiLabel(weights=str(path)))
    path.write_bytes(b"two")
    assert completed(MultiLabel(weights=str(path))).name() != first.name()


def test_the_runs_of_a_table():
    lines = Table(mains=("Class1", "Class2"), methods=("uniform", "arml"), without=("Class2",))
    runs = lines.runs(cpu("yeast"), seeds=2)
    assert len(runs) == len({run.name() for run in runs}) == 2 * (4 + 3)
    assert {run.main for run in runs} == {"Class1", "Class2"}


def test_the_paper_preset_is_the_papers_protocol():
    run = paper("celeba")
    assert (run.network, run.optimizer, run.lr, run.momentum) == ("resnet18", "sgd", 0.1, 0.9)
    assert (run.main, run.labels, run.batch_aux) == ("5_o_Clock_Shadow", 0.01, 256)
    assert run.steps == 90 * -(-162_770 // 256)
    assert [share * run.steps for share in run.lr_drop_at] == pytest.approx([30 * 636, 60 * 636])


def test_main_and_auxiliary_examples_are_drawn_separately(tmp_path):
    parts = build(MultiLabel(network="mlp-16", labels=20, batch_main=20, batch_aux=500), tmp_path, tmp_path)
    batch = parts.batches.next()
    again = parts.batches.next()
    assert batch.x.shape == (20, 103)
    assert batch.aux_x.shape == (500, 103)
    assert {tuple(x.tolist()) for x in batch.x} == {tuple(x.tolist()) for x in again.x}, "20 labels, no other example"
    assert len({tuple(x.tolist()) for x in batch.aux_x}) > 400
