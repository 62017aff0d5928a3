"""The demo, with runs that take no time."""

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from arml.cli.demo import Demo, run_demo
from arml.lab.catalogue import COMPARED_METHODS
from arml.lab.experiments import demo_runs

QUICK = {"steps": 2, "evaluate_every": 1, "record_every": 1, "checkpoint_every": 2}


def test_every_setting_has_the_main_task_alone_and_every_weighting():
    runs = demo_runs.runs(seeds=2)
    assert len(runs) == len({run.name() for run in runs})
    for setting, alone in (("ssl", "supervised"), ("mlc", "main_only"), ("dg", "main_only")):
        lines = {run.line() for run in runs if run.setting == setting}
        assert {line.method for line in lines if line.method} == set(COMPARED_METHODS)
        assert alone in {line.learner for line in lines}
    assert [run.seed for run in runs] == sorted(run.seed for run in runs)


@pytest.mark.slow
def test_it_ends_with_a_report_and_does_not_repeat_itself(tmp_path, monkeypatch, capsys):
    chosen = [replace(run, **QUICK) for run in demo_runs.runs(seeds=1) if run.method in ("uniform", "arml")]
    monkeypatch.setattr(demo_runs, "runs", lambda seeds: chosen)
    console = Console(width=200)
    assert run_demo(Demo(seeds=1, out=tmp_path), console) == 0
    first = capsys.readouterr().out
    assert f"report {tmp_path / 'report' / 'index.html'}" in first
    for words in ("digits, 50 labels", "yeast: Class1, 50 labels", "digits, 2 shots per class"):
        assert words in first
    page = (tmp_path / "report" / "index.html").read_text()
    assert "yeast: Class1" in page
    records = {path: path.stat().st_mtime_ns for path in Path(tmp_path).glob("*/record.jsonl")}
    assert len(records) == len(chosen)
    assert run_demo(Demo(seeds=1, out=tmp_path), console) == 0
    assert records == {path: path.stat().st_mtime_ns for path in Path(tmp_path).glob("*/record.jsonl")}
