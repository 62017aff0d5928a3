"""The scripts in ``examples`` and ``benchmarks``, run as their users run them, with tiny settings."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
METHODS = ["main only", "uniform", "ARML", "gated ARML"]
GROWING = ["pairwise", "one_by_one", "TorchJD mtl_backward", "TorchJD, chunks of 1"]
CONSTANT = ["fixed weights", "double_backward", "DualNumbers", "CentralDifferences"]


def run(script: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / script), *options]
    wide = {**os.environ, "COLUMNS": "200"}  # no sentence is broken into lines
    return subprocess.run(command, cwd=ROOT, env=wide, capture_output=True, text=True, timeout=300, check=False)


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


def test_cost_reports_and_records_every_case(tmp_path: Path) -> None:
    output = tmp_path / "deep" / "cost.json"
    ran = run("benchmarks/cost.py", "--quick", "--repeats", "1", "--batch", "4", "--output", str(output))
    assert ran.returncode in (0, 1), ran.stderr  # one repetition says little about time
    assert all(name in ran.stdout for name in [*GROWING, *CONSTANT, "K = 2", "K = 39"])

    found = json.loads(output.read_text())
    assert found["settings"]["num_aux"] == [2, 39]
    assert found["settings"]["clock"] == "process_time"
    assert set(found["versions"]) == {"torch", "torchjd", "python"}
    assert found["machine"]["cpus"] >= 1
    cases = {(row["name"], row["num_aux"]): row for row in found["timings"]}
    assert set(cases) == {(name, k) for name in [*GROWING, *CONSTANT] for k in (2, 39)}
    assert all(row["n"] == 1 and 0 < row["low"] <= row["median"] <= row["high"] for row in cases.values())
    assert all(cases["fixed weights", k]["ratio"] == 1 for k in (2, 39))
    assert found["growth"]["met"] == (ran.returncode == 0)
    assert ("not met" in ran.stdout) == (ran.returncode == 1)


def test_whole_run_compares_two_runs_that_differ_in_the_method(tmp_path: Path) -> None:
    output = tmp_path / "deep" / "whole_run.json"
    ran = run("benchmarks/whole_run.py", "--blocks", "2", "--output", str(output))
    assert ran.returncode in (0, 1), ran.stderr  # two blocks say little about time
    assert "yeast, mlp-64, K = 13, weights updated every 5 steps" in ran.stdout
    found = json.loads(output.read_text())
    seconds = found["seconds"]
    assert found["ratio"] == sum(seconds["learned"]) / sum(seconds["fixed"])
    assert len(seconds["learned"]) == len(seconds["fixed"]) == 2
    assert (ran.returncode == 0) == (found["ratio"] <= 1.1)
