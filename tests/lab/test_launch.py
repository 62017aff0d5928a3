"""Three lines of Python train a run; sweeps train many, without any command."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import arml.lab
from arml.lab import MultiLabel, run_all, train_run
from arml.lab.run import Run
from arml.lab.run_folder import is_done
from arml.lab.stopping import Stop

QUICK = MultiLabel(network="mlp-8", batch_main=8, batch_aux=8, steps=4, evaluate_every=2, record_every=2)


def test_the_lines_of_the_documentation_train_a_run(tmp_path, monkeypatch, capsys):
    page = Path(__file__).parents[2] / "docs" / "experiments.md"
    (block,) = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    assert len(block.strip().splitlines()) == 4, "one import, an empty line, and two more"
    monkeypatch.chdir(tmp_path)
    exec(block.replace("labels=50", "labels=50, steps=2, batch_labelled=8, batch_unlabelled=8"), {})
    assert "rotation" in capsys.readouterr().out


def test_three_lines_train_a_run(tmp_path):
    outcome = train_run(QUICK, tmp_path)
    assert 0 <= outcome["test_error"] <= 100
    assert sum(outcome["weights"].values()) == pytest.approx(13)
    assert is_done(tmp_path / QUICK.name())
    watched = []
    assert train_run(QUICK, tmp_path, watch=watched.append) == outcome
    assert not watched, "a finished run is not repeated"


def look_around(run: Run, folder: Path, stop: Stop) -> None:
    """Trains nothing; says which rooms of the package a worker has imported."""
    folder.mkdir(parents=True)
    (folder / "modules").write_text("\n".join(name for name in sys.modules if name.startswith("arml")))


def test_workers_import_no_command(tmp_path):
    (outcome,) = run_all([QUICK], tmp_path, work=look_around, workers=1)
    modules = (outcome.folder / "modules").read_text().splitlines()
    assert "arml.lab.run" in modules
    assert not [name for name in modules if name.startswith("arml.cli")]


def test_a_sweep_trains_and_keeps_the_reasons_of_failures(tmp_path):
    wrong = replace(QUICK, main="Class99")
    good, bad = run_all([QUICK, wrong], tmp_path, workers=2)
    assert sorted([good.failure is None, bad.failure is None]) == [False, True]
    assert "no target Class99" in (tmp_path / wrong.name() / "failure.txt").read_text()
    assert is_done(tmp_path / QUICK.name())


def test_reading_runs_does_not_load_what_trains_them():
    code = "import sys, arml.lab.trace; print([m for m in sys.modules if m.startswith('arml.lab.build')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_unknown_names_of_the_package_are_an_error():
    with pytest.raises(AttributeError, match="has no attribute 'trian_run'"):
        _ = arml.lab.trian_run
