"""`arml bench` as a user types it, with settings that take no time."""

import json
from dataclasses import replace

import pytest
from bench.made_results import cost, made_result, with_cost

from arml.bench import session
from arml.bench.contenders import GRAPH
from arml.bench.result import ProcessCost, read_result, write_result
from arml.cli import bench, main

TINY = ("--kinds", "mlp", "--num-aux", "2", "3", "--repeats", "1", "--batch", "4")
ON_TWO = ProcessCost("ResNet18", 10, "double_backward", 2, 1, 176, 3, 152, 5.0, 4.0, 6.0, 3, 0, 2.5)


def words(text):
    return " ".join(text.split())


def test_everything_is_measured_shown_and_written(tmp_path, capsys):
    assert main(["bench", *TINY, "--parts", "--out", str(tmp_path)]) == 0
    out = words(capsys.readouterr().out)
    assert "MLP, batch 4: time of a training step; fixed weights = 1" in out
    assert "Nothing that was measured here has a target." in out
    made = sorted(path.name for path in tmp_path.iterdir())
    assert made == ["cost.json", "cost.png", "cost.svg", "memory.png", "memory.svg", "tables.md"]
    found = json.loads((tmp_path / "cost.json").read_text())
    assert found["settings"]["clock"] == "process_time"
    assert found["settings"]["num_aux"] == [2, 3]
    assert {"torch", "torchjd", "processor"} <= set(found["environment"])
    assert len(found["targets"]) == 15
    cases = {(one["name"], one["num_aux"]): one for one in found["timings"]}
    assert set(cases) == {(name, k) for name in found["kinds"][0]["ways"] for k in (2, 3)}
    assert all(one["n"] == 1 and 0 < one["low"] <= one["median"] <= one["high"] for one in cases.values())
    assert all(cases["fixed weights", k]["ratio"] == 1 for k in (2, 3))
    assert all(one["peak_bytes"] > 0 for one in cases.values())
    # What it keeps in memory: a gradient for every task, one more task, one more gradient.
    stored = [cases["one backward per task (LibMTL)", k]["extra_bytes"] for k in (2, 3)]
    assert stored[1] - stored[0] == pytest.approx(4 * found["kinds"][0]["parameters"], rel=0.01)
    ours = [cases["double_backward", k]["extra_bytes"] for k in (2, 3)]
    assert abs(ours[1] - ours[0]) < 0.01 * 4 * found["kinds"][0]["parameters"]

    assert main(["report", str(tmp_path), "--out", str(tmp_path / "report"), "--figures", "0"]) == 0
    assert "Cost of an update against the number of auxiliary tasks" in (tmp_path / "report" / "index.html").read_text()


def test_a_quick_look_leaves_out_what_is_slow_and_says_that_it_is_one(tmp_path, capsys):
    assert main(["bench", *TINY, "--quick", "--parts", "--out", str(tmp_path)]) == 0
    assert "This was a quick look" in capsys.readouterr().out
    found = read_result(tmp_path / "cost.json")
    assert found.timing("MLP", "one_by_one", 2).peak_bytes is None
    assert found.timing("MLP", GRAPH, 2).peak_bytes is not None


def test_a_missed_target_shows_in_words_and_by_the_exit_code(tmp_path, capsys):
    path = write_result(made_result(), tmp_path, {})
    assert main(["bench", "--again", str(path), "--out", str(tmp_path / "again")]) == 0
    assert "15 of 15 targets that could be judged are met." in capsys.readouterr().out
    path = write_result(with_cost(made_result(), cost(GRAPH, 39, 5.0)), tmp_path, {})
    assert main(["bench", "--again", str(path), "--out", str(tmp_path / "again")]) == 1
    out = words(capsys.readouterr().out)
    assert "Not met: ResNet18, K = 39: a step that updates, double_backward: of its time: second backward 75%" in out
    assert "14 of 15 targets" in out
    assert read_result(tmp_path / "again" / "cost.json") == read_result(path)


def test_stopping_keeps_what_is_finished(tmp_path, capsys, monkeypatch):
    real, kinds = session.kind_costs, []

    def until_stopped(kind, *rest, **options):
        kinds.append(kind.name)
        if len(kinds) == 2:
            assert (tmp_path / "cost.json").exists()  # even if it were killed now
            raise KeyboardInterrupt
        return real(kind, *rest, **options)

    monkeypatch.setattr(session, "kind_costs", until_stopped)
    options = [*TINY, "--parts", "--out", str(tmp_path)]
    options[1:2] = ["mlp", "transformer"]
    assert main(["bench", *options]) == 130
    assert kinds == ["MLP", "transformer"]
    assert [facts.name for facts in read_result(tmp_path / "cost.json").kinds] == ["MLP"]
    assert (tmp_path / "tables.md").read_text().startswith("## MLP, batch 4")
    assert "Finished work is kept" in words(capsys.readouterr().err)


def test_parts_go_into_the_result_and_are_judged(tmp_path, monkeypatch, capsys):
    made = made_result()
    monkeypatch.setattr(session.whole_run, "whole_runs", lambda *_: [replace(run, whole=1.2) for run in made.schedule])
    monkeypatch.setattr(session.whole_run, "settled_cost", lambda *_: made.settled[0])
    monkeypatch.setattr(session.recommended_run, "recommended_steps", lambda *_: list(made.recommended))
    monkeypatch.setattr(session.step_profile, "step_phases", lambda *_: list(made.phases))
    monkeypatch.setattr(session.step_profile, "step_operations", lambda *_: [])
    monkeypatch.setattr(session.scaling, "costs_over_batches", lambda *_: list(made.scaling))
    monkeypatch.setattr(session.scaling, "costs_over_parameters", lambda *_: [])
    monkeypatch.setattr(session.processes, "process_costs", lambda *_: [ON_TWO])
    assert main(["bench", "--kinds", "--out", str(tmp_path)]) == 1
    found = read_result(tmp_path / "cost.json")
    assert (found.settled, found.phases, found.scaling) == (made.settled, made.phases, made.scaling)
    assert found.recommended == made.recommended
    assert [(one.name, one.update_bytes, one.ms) for one in found.processes] == [("double_backward", 152, 5.0)] * 2
    tables = (tmp_path / "tables.md").read_text()
    assert "On paper: 1,000,000,000 parameters, 200 tasks" in tables
    assert "4 of 6 targets" in capsys.readouterr().out
    assert not list(tmp_path.glob("*.png"))


def test_torchjd_is_not_needed(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(bench, "has_torchjd", lambda: False)
    monkeypatch.setattr(session, "has_torchjd", lambda: False)
    monkeypatch.setattr("arml.bench.contenders.has_torchjd", lambda: False)
    assert main(["bench", *TINY, "--parts", "--out", str(tmp_path)]) == 0
    assert "pip install arml[torchjd]" in capsys.readouterr().out
    found = read_result(tmp_path / "cost.json")
    assert "torchjd" not in found.environment
    assert not any("TorchJD" in name for name in found.kinds[0].ways)


@pytest.mark.parametrize("wrong", [("--threads", "0"), ("--num-aux", "0"), ("--batch", "0"), ("--repeats", "-1")])
def test_numbers_that_make_no_sense_are_refused(wrong, tmp_path, capsys):
    assert main(["bench", *wrong, "--out", str(tmp_path / "none")]) == 1
    assert wrong[0] in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
