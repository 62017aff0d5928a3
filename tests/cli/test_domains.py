"""Learning from several domains, as a user types it."""

import json

import pytest
from cli.typed import arml
from lab.own_data import write_shades

QUICK = ["--steps", "6", "--batch-source", "8", "--evaluate-every", "3", "--record-every", "3"]


@pytest.fixture
def folders(tmp_path):
    return write_shades(tmp_path)


def test_folders_of_ones_own_work_with_one_command(folders, tmp_path):
    words = ["train", "dg", "--folders", str(folders), "--target", "ink", "--shots", "2", *QUICK]
    done = arml(*words, "--image-size", "16", "--out", str(tmp_path / "runs"))
    assert done.returncode == 0, done.stderr
    assert "weights clay" in done.stdout
    assert list((tmp_path / "runs").glob("shades_*-ink-2-jt-agreement-0-*/record.jsonl"))


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


@pytest.mark.long
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
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "compare-dg-digits.json").symlink_to(tmp_path / "precious")
    done = arml(*words, "--without", "misleading", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "precious").read_text() == "mine", "tables are not written through links"
    table = json.loads((tmp_path / "compare-dg-digits.json").read_text())
    lines = [tuple(row["line"].values()) for row in table]
    assert lines == [
        ("main_only", "", ""),
        ("jt", "uniform", ""),
        *(("jt", "uniform", f"without {source}") for source in ("inverted", "misleading", "mnist5k", "turned")),
        ("jt", "arml", ""),
    ]
    assert list(table[3]["weights"]) == ["mnist5k", "inverted", "turned"]
    assert "Now without one auxiliary task at a time" in done.stdout
    assert "One seed says nothing: add --seeds 5." in done.stdout
