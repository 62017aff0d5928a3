"""The scripts in ``examples`` and ``benchmarks``, run as their users run them, with tiny settings."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from report.made_records import write

from arml.lab.run_kinds import MultiLabel

ROOT = Path(__file__).parents[2]
METHODS = ["main only", "uniform", "ARML", "gated ARML"]


def run(script: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / script), *options]
    wide = {**os.environ, "COLUMNS": "200"}  # no sentence is broken into lines
    return subprocess.run(command, cwd=ROOT, env=wide, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.long
def test_digits_reports_and_records_every_run(tmp_path: Path) -> None:
    output = tmp_path / "deep" / "digits.jsonl"
    ran = run("examples/digits.py", "--seeds", "2", "--steps", "20", "--processes", "1", "--output", str(output))
    assert ran.returncode == 0, ran.stderr
    assert all(name in ran.stdout for name in [*METHODS, "prime", "random_4", "n = 2 paired seeds"])
    assert "than uniform" in ran.stdout or "is established" in ran.stdout

    first, *runs = [json.loads(line) for line in output.read_text().splitlines()]
    assert first["settings"]["steps"] == 20
    assert first["seeds"] == 2
    assert list(first["methods"]) == METHODS
    assert [(r["seed"], r["method"]) for r in runs] == [(seed, name) for seed in range(2) for name in METHODS]
    assert all(0 <= r["test_error"] <= 100 for r in runs)
    total = {r["method"]: sum(r["weights"].values()) for r in runs}
    assert total["main only"] == 0
    assert total["uniform"] == 8
    assert abs(total["ARML"] - 8) < 1e-9


def test_digits_refuses_a_single_seed(tmp_path: Path) -> None:
    ran = run("examples/digits.py", "--seeds", "1", "--output", str(tmp_path / "digits.jsonl"))
    assert ran.returncode == 2
    assert "--seeds should be at least 2" in ran.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.long
@pytest.mark.slow
def test_step_reports_and_records_every_variant(tmp_path: Path) -> None:
    output = tmp_path / "deep" / "step.json"
    ran = run("benchmarks/step.py", "--quick", "--output", str(output))
    assert ran.returncode == 0, ran.stderr
    assert all(name in ran.stdout for name in ["images per second", "of a whole step", "Memory format", "WRN-10-1"])

    found = json.loads(output.read_text())
    assert found["settings"]["clock"] == "process_time"
    assert found["environment"]["torch"]
    rows = found["timings"]
    assert all(row["n"] == 2 and 0 < row["low"] <= row["median"] <= row["high"] for row in rows)
    variants: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    for row in rows:
        variants.setdefault((row["part"], row["subject"], row["what"]), []).append(row)
    networks = {
        "optimiser": ["mlp-64", "small-32", "ResNet18"],
        "memory format": ["WRN-28-2", "ResNet18"],
        "few tasks": ["small-32", "WRN-28-2", "ResNet18"],
    }
    engines = ["fixed weights", "pairwise", "pairwise, reused", "double_backward"]
    for part, what, names in [
        ("optimiser", "Adam", ["default", "foreach", "fused"]),
        ("optimiser", "SGD with momentum", ["default", "foreach", "fused"]),
        ("memory format", "training step", ["contiguous", "channels_last"]),
        ("memory format", "update, double_backward", ["contiguous", "channels_last"]),
        ("few tasks", "one batch for all tasks", engines),
        ("few tasks", "a batch per task", engines),
    ]:
        for network in networks[part]:
            same = variants[part, network, what]
            assert [row["variant"] for row in same] == names
            assert [row["ratio"] for row in same] == [row["median"] / same[0]["median"] for row in same]
    assert len([key for key in variants if key[0] == "augmentation"]) == 5


def test_step_measures_one_part_that_it_knows(tmp_path: Path) -> None:
    ran = run("benchmarks/step.py", "--only", "tasks", "--output", str(tmp_path / "step.json"))
    assert ran.returncode == 2
    assert "--only should be one of augmentation, optimiser, memory format, few tasks. Got 'tasks'." in ran.stderr


def test_step_says_what_compiling_needs(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks/step.py"), "--compile", "--output", str(tmp_path / "step.json")]
    without = {**os.environ, "CXX": "no-such-compiler"}
    ran = subprocess.run(command, cwd=ROOT, env=without, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 2
    assert "there is no no-such-compiler" in ran.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.long
@pytest.mark.slow
def test_schedule_compares_every_schedule_with_updates_at_every_step(tmp_path: Path) -> None:
    settings = ["--settings", "mlc", "--steps", "30", "--every", "1", "5", "--seeds", "2", "--workers", "1"]
    ran = run("benchmarks/schedule_study.py", *settings, "--out", str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    assert all(words in ran.stdout for words in ["yeast, 13 targets, n = 2 seeds", "5, step x 2.2", "growing to 25"])
    lines = json.loads((tmp_path / "schedule.json").read_text())["lines"]
    assert [(line["every"], line["longer"], line["growing"]) for line in lines] == [
        (1, False, False),
        (5, False, False),
        (5, True, False),
        (25, False, True),
    ]
    assert lines[0]["distance"]["mean"] == 0
    assert all(line["distance"]["mean"] > 0 and line["difference"]["n"] == 2 for line in lines[1:])


def test_rare_targets_finds_weights_that_follow_the_rate_of_positives(tmp_path: Path) -> None:
    """Rates by hand: Class14 1.4 %, Class9 7.4 %, Class2 43 %, Class12 75 %. ARML's weights here go the other way."""
    rare_first = {"Class14": 4.0, "Class9": 3.0, "Class2": 2.0, "Class12": 1.0}
    for seed in range(2):
        write(tmp_path, MultiLabel(method="arml", seed=seed), 30.0, weights=rare_first)
        write(tmp_path, MultiLabel(method="uniform", seed=seed), 30.0, weights=dict.fromkeys(rare_first, 1.0))
    ran = run("benchmarks/rare_targets.py", str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[2:] == [
        "| yeast | arml | Class1 | -1.00 ± 0.00 | 2 |",
        "| yeast | arml | all | -1.00 ± 0.00 | 2 |",
    ], "equal weights have no order"
    assert run("benchmarks/rare_targets.py", str(tmp_path / "nothing")).returncode == 1
