"""A result as files, and the verdict on its targets."""

import json
from dataclasses import replace

from bench.made_results import cost, made_result, with_cost

from arml.bench.contenders import GRAPH
from arml.bench.cost_targets import judge_targets
from arml.bench.publish import publish, verdict, write_cost
from arml.bench.result import read_result


def test_all_files_are_written(tmp_path):
    paths = publish(made_result(), tmp_path / "deep")
    assert [path.name for path in paths] == [
        "cost.json",
        "tables.md",
        *("cost.png", "cost.svg", "memory.png", "memory.svg"),
    ]
    assert all(path.stat().st_size > 0 for path in paths)
    nothing_timed = replace(made_result(), kinds=(), timings=())
    assert [path.name for path in publish(nothing_timed, tmp_path)] == ["cost.json", "tables.md"]


def test_the_cost_file_holds_the_verdict_on_every_target(tmp_path):
    path = write_cost(with_cost(made_result(), cost(GRAPH, 39, 5.0)), tmp_path)
    targets = json.loads(path.read_text())["targets"]
    assert [target["met"] for target in targets] == [False, *[True] * 14]
    assert set(targets[0]) == {"name", "limit", "measured", "details", "reason", "met"}
    assert read_result(path).timing("ResNet18", GRAPH, 39).ratio == 5.0


def test_the_verdict_counts_only_what_was_measured():
    judged = judge_targets(replace(made_result(), schedule=(), settled=(), recommended=()))
    assert list(verdict(judged, quick=False)) == ["9 of 9 targets that could be judged are met."]
    assert "not final" in list(verdict(judged, quick=True))[1]
