"""A sample of the torture; `make torture` runs all of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork") or not Path("/proc").exists(), reason="the torture forks, and reads /proc")
def test_a_sample_of_the_torture_finds_nothing(tmp_path):
    parts = ["malformed", "checkpoints", "kills", "signals", "full disks"]
    words = ["--seed", "3", "--share", "0.002", "--parts", *parts, "--out", str(tmp_path)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "torture", *words]
    answer = subprocess.run(command, cwd=TESTS, env=environment, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "0 faults" in answer.stdout.splitlines()[-1]
    again = subprocess.run(command, cwd=TESTS, env=environment, capture_output=True, text=True)
    assert again.stdout == answer.stdout  # nothing is left to do: results are kept
