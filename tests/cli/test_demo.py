"""The demo, with runs that take no time."""

from dataclasses import replace
from pathlib import Path

from rich.console import Console

from arml.cli.demo import Demo, run_demo
from arml.lab.experiments import demo_runs
from arml.lab.run import Line

QUICK = {"steps": 2, "evaluate_every": 1, "record_every": 1, "checkpoint_every": 2}


def test_few_lines_and_many_seeds():
    runs = demo_runs.runs(seeds=2)
    assert len(runs) == len({run.name() for run in runs})
    assert [run.seed for run in runs] == sorted(run.seed for run in runs)
    assert {run.line() for run in runs} == {
        Line("main_only"),
        *(Line("jt", method) for method in ("uniform", "arml", "gated_arml", "agreement")),
        *(Line("jt", "uniform", f"without {source}") for source in ("mnist5k", "inverted", "turned", "misleading")),
    }
    assert len(demo_runs.runs(Demo().seeds)) == 72


def test_it_ends_with_an_answer_and_a_page_and_does_not_repeat_itself(tmp_path, monkeypatch, capsys):
    chosen = [replace(run, **QUICK) for run in demo_runs.runs(seeds=2) if run.method in ("uniform", "agreement")]
    monkeypatch.setattr(demo_runs, "runs", lambda seeds: chosen)
    console = Console(width=80)
    assert run_demo(Demo(seeds=2, out=tmp_path), console) == 0
    first = capsys.readouterr().out
    assert f"report {tmp_path / 'report' / 'index.html'}" in first.replace("\n", "")
    assert "20 digits labels, four other sources" in first
    assert len(first.splitlines()) < 24
    assert "Test results in %" not in first
    assert "Test results in %" in (tmp_path / "report" / "index.html").read_text()
    records = {path: path.stat().st_mtime_ns for path in Path(tmp_path).glob("*/record.jsonl")}
    assert len(records) == len(chosen)
    assert run_demo(Demo(seeds=2, out=tmp_path), console) == 0
    assert records == {path: path.stat().st_mtime_ns for path in Path(tmp_path).glob("*/record.jsonl")}
