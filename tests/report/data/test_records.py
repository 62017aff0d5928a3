"""What is read, what is not, and why."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report.made_records import lines_of, write

from arml.lab.run_kinds import SemiSupervised
from arml.lab.trace import result
from arml.report.contents import make_report
from arml.report.data import records
from arml.report.data.records import MOST_STEPS, collect


def write_lines(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_folders_runs_and_files_may_be_given_and_count_once(tmp_path):
    one, two = write(tmp_path, SemiSupervised(seed=0), 10.0), write(tmp_path, SemiSupervised(seed=1), 11.0)
    for paths in ([tmp_path], [one, two / "record.jsonl"], [tmp_path, one]):
        found = collect(paths)
        assert sorted(one.run.seed for one in found.recorded) == [0, 1]
        assert found.skipped == []


def test_a_path_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(ValueError, match=r"Found neither a folder nor a file .*nowhere"):
        collect([tmp_path / "nowhere"])


GOOD = lines_of(SemiSupervised(), 10.0, weights={"rotation": 1.0})
BAD = {
    "empty": ("", "it is empty, or its first line is cut off"),
    "cut": (json.dumps(GOOD[0])[:50], "its first line is cut off"),
    "foreign": ('{"epoch": 1, "loss": 2.0}\n', "KeyError: 'setting'"),
    "no json": ("step,loss\n1,2\n", "JSONDecodeError"),
    "unknown setting": ('{"setting": "rl", "run": {}, "environment": {}}\n', "KeyError: 'rl'"),
    "unknown option": ('{"setting": "ssl", "run": {"momentun": 1}, "environment": {}}\n', "momentun"),
    "foreign lines": (json.dumps(GOOD[0]) + "\n[1, 2]\n", r"line 2 is no record of a step: [1, 2]"),
    "result without weights": (json.dumps(GOOD[0]) + '\n{"step": 1, "test_error": 3}\n', "its result has numbers"),
    "result that is no number": (
        json.dumps(GOOD[0]) + '\n{"step": 1, "test_error": NaN, "validation_error": 1, "weights": {}}\n',
        "its result has numbers",
    ),
}


HEAD, TAIL = json.dumps(GOOD[0]), json.dumps(GOOD[-1])


def change_run(**fields):
    return json.dumps({**GOOD[0], "run": {**GOOD[0]["run"], **fields}}) + "\n"


def change_result(**values):
    return f"{HEAD}\n{json.dumps(GOOD[-1] | values)}\n"


DIGITS = "9" * 4000
ODD = {
    "nested": (HEAD + "\n" + "[" * 100_000 + "]" * 100_000 + "\n", "RecursionError"),
    "nested value": (HEAD + '\n{"step": 1, "weights": ' + '{"a":' * 900 + "1" + "}" * 900 + "}\n", "odd number"),
    "null": ("null\n", "TypeError"),
    "null line": (f"{HEAD}\nnull\n", "line 2 is no record of a step: None"),
    "run is a list": ('{"setting": "ssl", "run": [], "environment": {}}\n', "AttributeError"),
    "setting is a list": ('{"setting": [], "run": {}, "environment": {}}\n', "TypeError"),
    "environment": (json.dumps({**GOOD[0], "environment": [1]}) + "\n", "`environment` should hold names and texts"),
    "environment values": (json.dumps({**GOOD[0], "environment": {"a": []}}) + "\n", "names and texts"),
    "labels are text": (change_run(labels="many"), "`labels` of the run has an odd value: 'many'"),
    "seed is a list": (change_run(seed=[1]), "TypeError"),
    "seed is true": (change_run(seed=True), "`seed` of the run has an odd value: True"),
    "steps are huge": (change_run(steps=10**30), "`steps`"),
    "method is a number": (change_run(method=3), "`method` of the run has an odd value: 3"),
    "method is empty": (change_run(method=None), "`method`"),
    "dataset is long": (change_run(dataset="x" * 20_000), "`dataset`"),
    "lr is a dictionary": (change_run(lr={"a": 1}), "TypeError"),
    "huge whole number": (f'{HEAD}\n{{"step": {DIGITS}}}\n', "line 2 is no record of a step"),
    "longer whole number": (f'{HEAD}\n{{"step": {DIGITS}{DIGITS}}}\n', "Exceeds the limit"),
    "huge error": (change_result(test_error=int(DIGITS)), "its result has numbers"),
    "error that overflows": (change_result(test_error=1e308), "its result has numbers"),
    "infinite validation": (change_result(validation_error=1e999), "its result has numbers"),
    "error is text": (change_result(test_error="12"), "its result has numbers"),
    "other measure": (change_result(test_auc=[1]), "its result has numbers"),
    "weights are a list": (change_result(weights=[1]), "`weights` should hold a number for each task"),
    "weight is text": (change_result(weights={"a": "b"}), "odd number for 'a'"),
    "weight overflows": (change_result(weights={"a": 1e200}), "odd number for 'a'"),
    "agreement": (f'{HEAD}\n{{"step": 1, "weights": {{}}, "agreement": 3}}\n', "`agreement` should hold"),
    "yardsticks": (change_result(yardsticks={"mean": "x"}), "odd number for 'mean'"),
    "step is negative": (f'{HEAD}\n{{"step": -1}}\n', "line 2 is no record of a step"),
    "divergence": (f'{HEAD}\n{{"step": 1, "diverged": 3}}\n', "`diverged` should hold tasks and a reason"),
    "lone surrogate": ('{"setting": "\\ud800", "run": {}, "environment": {}}\n', "KeyError"),
}


@pytest.mark.parametrize("case", ODD)
def test_one_odd_record_does_not_stop_the_report(tmp_path, case):
    content, reason = ODD[case]
    write(tmp_path, SemiSupervised(seed=1), 10.0)
    path = tmp_path / "other" / "record.jsonl"
    path.parent.mkdir()
    path.write_text(content)
    found = collect([tmp_path])
    assert len(found.recorded) == 1
    ((skipped, why),) = found.skipped
    assert skipped == path
    assert reason in why
    assert len(why) <= 300
    make_report(found, paper=False, defaults=lambda run: ([], type(run)()))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*GOOD[0], *GOOD[-1]]), inner, max_size=4)
    ),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(at=st.integers(0, len(GOOD) - 1), key=st.sampled_from([*GOOD[0]["run"], *GOOD[0], *GOOD[-1]]), value=JSON)
def test_any_json_in_any_place_is_read_or_skipped(tmp_path_factory, at, key, value):
    lines = json.loads(json.dumps(GOOD))
    inside = lines[at]["run"] if key in lines[at].get("run", {}) else lines[at]
    inside[key] = value
    folder = tmp_path_factory.getbasetemp() / "any"
    write_lines(folder / "record.jsonl", lines)
    found = collect([folder])
    assert len(found.recorded) + len(found.skipped) == 1
    make_report(found, paper=False, defaults=lambda run: ([], type(run)()))


def test_numbers_that_were_not_finite_are_left_out(tmp_path):
    lines = [GOOD[0], {"step": 1, "weights": {"a": 1.0, "b": None}, "agreement": {"a": None}}]
    write_lines(tmp_path / "record.jsonl", lines)
    ((_, records, _),) = collect([tmp_path]).recorded
    assert records == [{"step": 1, "weights": {"a": 1.0}, "agreement": {}}]


@pytest.mark.parametrize("name", ["record.jsonl", "failure.txt"])
@pytest.mark.parametrize("kind", ["pipe", "endless", "folder"])
def test_only_regular_files_are_read(tmp_path, name, kind):
    write(tmp_path, SemiSupervised(seed=1), 10.0)
    path = tmp_path / "other" / name
    path.parent.mkdir()
    {"pipe": os.mkfifo, "endless": lambda p: p.symlink_to("/dev/zero"), "folder": Path.mkdir}[kind](path)
    found = collect([tmp_path])
    assert len(found.recorded) == 1
    assert found.skipped == [(path, "it is no regular file")]


def test_records_that_are_too_large_are_not_read(tmp_path, monkeypatch):
    path = write(tmp_path, SemiSupervised(), 10.0) / "record.jsonl"
    monkeypatch.setattr(records, "LARGEST_LINE", 50)
    assert "cut off" in collect([tmp_path]).skipped[0][1]
    monkeypatch.setattr(records, "LARGEST_RECORD", 100)
    ((skipped, why),) = collect([tmp_path]).skipped
    assert (skipped, why) == (path, f"it has {path.stat().st_size} bytes; records of at most 100 are read")


def test_a_long_failure_is_read_from_its_end(tmp_path):
    folder = write(tmp_path, SemiSupervised())
    (folder / "failure.txt").write_text("x" * 10**6 + "\nOSError: the end\n")
    assert [*collect([tmp_path]).failed.values()] == ["OSError: the end"]


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_read_is_skipped_with_its_reason(tmp_path, case):
    content, reason = BAD[case]
    write(tmp_path, SemiSupervised(seed=1), 10.0)
    path = tmp_path / "other" / "record.jsonl"
    path.parent.mkdir()
    path.write_text(content)
    found = collect([tmp_path])
    assert len(found.recorded) == 1
    ((skipped, why),) = found.skipped
    assert skipped == path
    assert reason in why
    assert not why.startswith(str(path))


def test_bytes_that_are_no_text_are_skipped(tmp_path):
    (tmp_path / "record.jsonl").write_bytes(b"\xff\xfe\x00\n\x80\n")
    assert "UnicodeDecodeError" in collect([tmp_path]).skipped[0][1]


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_record_that_is_being_written_counts_as_unfinished(tmp_path, cut):
    path = write(tmp_path, SemiSupervised(), 10.0, weights={"rotation": 1.0}) / "record.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    (one,) = collect([tmp_path]).recorded
    assert result(one.records) is None


def test_failures_differ_from_unfinished_and_from_repeated_runs(tmp_path):
    for seed, error in ((0, None), (1, None), (2, 9.0)):
        folder = write(tmp_path, SemiSupervised(seed=seed), error)
        if seed != 1:
            (folder / "failure.txt").write_text("Traceback ...\nRuntimeError: out of memory\n")
    (tmp_path / "early").mkdir()
    (tmp_path / "early" / "failure.txt").write_text("DataError: no such file\n")
    found = collect([tmp_path])
    assert found.failed == {SemiSupervised(seed=0): "RuntimeError: out of memory"}
    assert found.skipped == [
        (tmp_path / "early" / "failure.txt", "the run failed before its first record: DataError: no such file")
    ]


def test_of_two_copies_the_complete_one_counts(tmp_path):
    unfinished = write_lines(tmp_path / "a" / "record.jsonl", lines_of(SemiSupervised()))
    (tmp_path / "a" / "failure.txt").write_text("killed")
    complete = write_lines(tmp_path / "b" / "record.jsonl", lines_of(SemiSupervised(), 10.0))
    for paths in ([tmp_path / "a", tmp_path / "b"], [tmp_path / "b", tmp_path / "a"]):
        found = collect(paths)
        (one,) = found.recorded
        assert result(one.records)["test_error"] == 10
        assert found.failed == {}
        ((path, why),) = found.skipped
        assert path == unfinished
        assert str(complete) in why


def test_long_records_are_thinned_and_keep_their_end(tmp_path):
    steps = tuple(range(1, 1002))
    write(tmp_path, SemiSupervised(), 10.0, weights={"rotation": 1.7}, steps=steps)
    (one,) = collect([tmp_path]).recorded
    assert len(one.records) <= MOST_STEPS + 1
    assert one.records[-2]["step"] == 1001
    assert one.records[-1]["test_error"] == 10
