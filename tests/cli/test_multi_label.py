"""Learning many targets, as a user types it."""

import json

import pytest
from cli.typed import arml
from lab.own_data import write_patients

QUICK = ["--steps", "6", "--batch-main", "8", "--batch-aux", "8", "--evaluate-every", "3", "--record-every", "3"]


@pytest.fixture
def table(tmp_path):
    return write_patients(tmp_path)


def test_a_table_of_ones_own_works_with_one_command(table, tmp_path):
    words = ["train", "mlc", "--table", str(table), "--main", "ill", "--aux", "score,third,twin"]
    done = arml(*words, *QUICK, "--out", str(tmp_path / "runs"))
    assert done.returncode == 0, done.stderr
    assert "test average precision" in done.stdout
    assert all(name in done.stdout for name in ("score", "third", "twin"))
    (record,) = (tmp_path / "runs").glob("patients_*-ill-inf-joint-agreement-0-*/record.jsonl")
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
        (["--main", "ill"], "needs --aux COLUMN,COLUMN,...: columns that may help"),
        (["--aux", "score"], "needs --main COLUMN"),
        (["--main", "ill", "--aux", "score", "--dataset", "celeba"], "and no --dataset"),
        (["--main", "ill", "--aux", "score", "--network", "mlp-0"], "'mlp-0' is no network for rows of a table"),
        (["--main", "ill", "--aux", "score", "--evaluate-every", "0"], "`evaluate_every` should be at least 1. Got 0"),
        (["--main", "ill", "--aux", "score", "--lr", "-1"], "`lr` should be a positive number. Got -1"),
        (["--main", "ill", "--aux", "[/bold]"], "Unknown column '[/bold]'"),
        (["--main", "ill", "--aux", "ill"], "ill"),
        (["--main", "ill", "--aux", "score", "--network", "small-32"], "no network for rows of a table"),
        (["--main", "ill", "--aux", "score", "--method", "grid-1"], "Got grid-1 for 1: score"),
        (["--main", "ill", "--aux", "score", "--labels", "1000"], "at most"),
        (["--main", "ill", "--aux", "score", "--as-numbers", "ward"], "--as-numbers ward: this column is no target."),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(table, tmp_path, more, message):
    failed = arml("train", "mlc", "--table", str(table), *QUICK, *more, "--out", str(tmp_path / "runs"))
    assert failed.returncode == 1
    assert message in " ".join(failed.stderr.split())
    assert "Traceback" not in failed.stderr


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
        "--no-leave-one-out",
    ]
    done = arml(*words, "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.replace("│", " ").split())
    assert "Yardsticks: logistic regression on the same labels" in text
    assert "always the most frequent class 31.47" in text
    assert "50 Class1 labels (yeast), 13 other targets" in done.stdout.splitlines()[-12:]
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
