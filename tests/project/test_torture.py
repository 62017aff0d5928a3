"""A sample of the torture; `make torture` runs all of it."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


linux = pytest.mark.skipif(
    not hasattr(os, "fork") or not Path("/proc").exists(), reason="the torture forks, and reads /proc"
)


def crawl(words: list[str]) -> int:
    """Works a little and rests a lot, as a command does on a busy machine."""
    for _ in range(20):
        end = time.process_time() + 0.02
        while time.process_time() < end:
            pass
        time.sleep(0.08)
    return 0


def wait(words: list[str]) -> int:
    time.sleep(60)
    return 0


def spin(words: list[str]) -> int:
    while True:
        pass


@linux
@pytest.mark.parametrize(("command", "code"), [(crawl, 0), (wait, -9), (spin, -9)])
def test_a_command_hangs_if_it_does_nothing_or_works_for_too_long_not_if_others_are_busy(
    tmp_path, monkeypatch, command, code
):
    from torture import commands

    monkeypatch.setattr(commands, "main", command)
    assert commands.run([], tmp_path / "log", timeout=1.0).code == code


@linux
def test_a_sample_of_the_torture_finds_nothing(tmp_path):
    parts = ["malformed", "checkpoints", "kills", "signals", "full disks"]
    words = ["--seed", "3", "--share", "0.006", "--parts", *parts, "--out", str(tmp_path)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "torture", *words]
    answer = subprocess.run(command, cwd=TESTS, env=environment, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "0 faults" in answer.stdout.splitlines()[-1]
    again = subprocess.run(command, cwd=TESTS, env=environment, capture_output=True, text=True)
    assert again.stdout == answer.stdout  # nothing is left to do: results are kept
