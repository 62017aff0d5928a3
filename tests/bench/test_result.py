"""Results as files."""

import json
from dataclasses import replace

import pytest
from bench.made_results import TORCHJD, cost_file, made_result

from arml.bench.result import Cost, collect_costs, cost_files, read_result, write_result


def test_a_result_is_read_as_it_was_written(tmp_path):
    path = write_result(made_result(), tmp_path / "deep", {"targets": []})
    assert path.name == "cost.json"
    assert replace(read_result(path), kinds=()) == replace(made_result(), kinds=())
    assert read_result(path).kinds[0].ways == list(made_result().kinds[0].ways)
    older = json.loads(path.read_text())
    del older["recommended"]
    path.write_text(json.dumps(older))
    assert read_result(path).recommended == ()
    path.write_text(json.dumps({"timings": []}))
    with pytest.raises(ValueError, match="is no result of `arml bench`"):
        read_result(path)


def test_times_are_read_from_cost_files(tmp_path):
    path = cost_file(tmp_path / "cost.json")
    costs, skipped = collect_costs([path])
    assert Cost("pairwise", 10, 10.0, 9.0, 11.0, "ResNet18") in costs
    assert skipped == []
    path = write_result(made_result(), tmp_path, {})
    assert Cost(TORCHJD, 39, 39.0, pytest.approx(35.1), pytest.approx(42.9), "ResNet18") in collect_costs([path])[0]
    without_kinds = [{"name": "x", "num_aux": 2, "ratio": 3.0, "median": 6.0, "low": 4.0, "high": 8.0}]
    path.write_text(json.dumps({"timings": without_kinds}))
    assert collect_costs([path]) == ([Cost("x", 2, 3.0, 2.0, 4.0)], [])


@pytest.mark.parametrize("content", ['{"something": "else"}', "[1]", "no JSON", '{"timings": [{"name": "x"}]}', "\xff"])
def test_files_that_are_no_cost_files_are_skipped_with_a_reason(tmp_path, content):
    wrong, right = tmp_path / "wrong.json", cost_file(tmp_path / "cost.json")
    wrong.write_bytes(content.encode("latin-1"))
    costs, ((path, reason),) = collect_costs([wrong, right])
    assert path == wrong
    assert reason.startswith("is no result of `arml bench`, or one of another version (")
    assert len(costs) == 12


def test_cost_files_are_found_once_below_folders_and_by_name(tmp_path):
    deep = tmp_path / "runs" / "deep"
    deep.mkdir(parents=True)
    inside, other = cost_file(deep / "cost.json"), cost_file(tmp_path / "other.json")
    (deep / "record.jsonl").write_text("{}")
    assert cost_files([tmp_path / "runs", deep / "record.jsonl", inside, other]) == [inside, other]
    assert cost_files([tmp_path]) == [inside]  # below folders, only that name
    assert cost_files([tmp_path / "nowhere.json"]) == []
