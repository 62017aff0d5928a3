"""The suite as a user types it, with runs that take no time."""

import json
from pathlib import Path

import pytest
import torch
from cli.typed import arml
from lab.build.test_method_file import EXAMPLE
from PIL import Image
from rich.console import Console

from arml.cli.suite import SuiteOptions, run_suite
from arml.lab.worlds import WORLDS

SHORT = ("--steps", "2", "--seeds", "1", "--workers", "1")


def test_the_list_names_every_world(capsys):
    assert run_suite(SuiteOptions(list=True), Console(width=200)) == 0
    out = capsys.readouterr().out
    assert all(f" {name} " in out for name in WORLDS)


@pytest.mark.slow
def test_one_world_with_a_method_of_the_users_and_resume(tmp_path):
    file = tmp_path / "my_method.py"
    file.write_text(EXAMPLE[1])
    words = ("suite", "--quick", "--worlds", "digits-one-helps-mlp", "--methods", "arml", *SHORT)
    words += ("--method-file", str(file), "--out", str(tmp_path / "runs"))
    first = arml(*words)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "5 runs in 1 worlds" in first.stdout
    assert "my_method" in first.stdout
    scores = json.loads((tmp_path / "runs" / "leaderboard.json").read_text())
    assert len(scores) == 4
    assert "digits-one-helps-mlp" in (tmp_path / "runs" / "leaderboard.md").read_text()
    records = {path: path.stat().st_mtime_ns for path in Path(tmp_path).glob("runs/*/record.jsonl")}
    assert len(records) == 5
    assert arml(*words).returncode == 0
    assert records == {path: path.stat().st_mtime_ns for path in Path(tmp_path).glob("runs/*/record.jsonl")}
    file.write_text(EXAMPLE[1].replace("0.5", "0.25"))
    assert arml(*words).returncode == 0
    assert len(list(Path(tmp_path).glob("runs/*/record.jsonl"))) == 6, "a changed file makes another run"


@pytest.mark.slow
def test_a_table_of_the_users(tmp_path):
    path = tmp_path / "patients.csv"
    rows = [f"{n % 3},{(n * 7) % 5},{'ill' if n % 3 else 'well'},{(n * 11) % 13 / 2}" for n in range(90)]
    path.write_text("\n".join(["a,b,state,height", *rows]))
    words = ("suite", "--table", str(path), "--main", "state", "--aux", "height", "--methods", "arml", *SHORT)
    found = arml(*words, "--out", str(tmp_path / "runs"))
    assert found.returncode == 0, found.stdout + found.stderr
    assert len(list(Path(tmp_path).glob("runs/*/done"))) == 4 * 3 + 2


@pytest.mark.slow
def test_folders_of_the_users(tmp_path):
    generator = torch.Generator().manual_seed(0)
    for domain in ("photo", "sketch"):
        for kind in ("cat", "dog"):
            folder = tmp_path / "images" / domain / kind
            folder.mkdir(parents=True)
            for n in range(30):
                pixels = torch.randint(256, (16, 16), generator=generator).to(torch.uint8).numpy()
                Image.fromarray(pixels).save(folder / f"{n}.png")
    words = ("suite", "--folders", str(tmp_path / "images"), "--main", "sketch", "--methods", "uniform", *SHORT)
    found = arml(*words, "--out", str(tmp_path / "runs"))
    assert found.returncode == 0, found.stdout + found.stderr
    assert len(list(Path(tmp_path).glob("runs/*/done"))) == 3 * 2 + 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--worlds", "nowhere"), "Unknown world 'nowhere'"),
        (("--methods", "magic"), "Unknown method 'magic'"),
        (("--method-file", "missing.py"), "is no Python file"),
        (("--table", "missing.csv"), "need --main"),
        (("--seeds", "0"), "--seeds should be at least 1"),
    ],
)
def test_mistakes_are_named(words, said, tmp_path):
    found = arml("suite", *words, "--out", str(tmp_path))
    assert found.returncode != 0
    assert said in " ".join((found.stdout + found.stderr).split())
