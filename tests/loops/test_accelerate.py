"""Accelerate, and the example without a framework."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


def run(script, *options):
    command = [sys.executable, f"examples/{script}.py", *options]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout


@pytest.mark.long
def test_accelerate_goes_on_from_its_state(tmp_path):
    pytest.importorskip("accelerate")
    whole = run("accelerate_digits", "--epochs", "3", "--out", str(tmp_path / "whole"))
    run("accelerate_digits", "--epochs", "2", "--out", str(tmp_path / "half"))
    rest = run("accelerate_digits", "--epochs", "3", "--resume", "--out", str(tmp_path / "half"))
    assert rest.splitlines() == whole.splitlines()[2:]
    (record,) = (tmp_path / "half").glob("*/record.jsonl")
    steps = [json.loads(line)["step"] for line in record.read_text().splitlines()[1:]]
    assert steps == sorted(steps)
    assert steps[-1] == 3 * 29


@pytest.mark.long
def test_active_tasks_save_time():
    found = run("active_tasks", "--steps", "60", "--seeds", "1").splitlines()
    ratios = {line[:18].strip(): float(line[18:].split()[0]) for line in found}
    assert ratios["fixed weights"] == 1
    assert ratios["learned, skipping"] < ratios["learned"]
