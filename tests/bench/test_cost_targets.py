"""Targets, tables and figures from results made up by hand."""

import json
from dataclasses import replace

import pytest
from bench.made_results import MILLION, TORCHJD, made_result, row, with_row

from arml.bench.contenders import DUAL, FIXED, GRAPH
from arml.bench.cost_charts import charts
from arml.bench.cost_targets import targets
from arml.bench.problems import RESNET
from arml.bench.result import Refusal, Result, Settled, read, write
from arml.bench.tables import memory_sheet, sheets, time_sheet
from arml.report.data.records import Cost, collect
from arml.report.output.text import markdown


def judged(result):
    return {target.name: target for target in targets(result)}


def missed(result):
    return [target for target in targets(result) if target.met is False]


def test_all_targets_are_met():
    found = targets(made_result())
    assert [target.outcome() for target in found] == ["met"] * 12
    by_name = judged(made_result())
    assert by_name["ResNet18, K = 39: a step that updates, double_backward"].measured == 3.0
    assert by_name["ResNet18, K = 39: a step that updates, double_backward"].details == "600 ms against 200 ms"
    memory = by_name["ResNet18, K = 2 to 200: growth of extra memory, DualNumbers"]
    assert (memory.measured, memory.details) == (1.0, "0.50 P to 0.50 P, P the shared parameters' 4.0 MB")


def test_an_update_that_takes_too_long_says_where_its_time_goes():
    (target,) = missed(with_row(made_result(), row(GRAPH, 39, 5.0)))
    assert (target.measured, target.limit) == (5.0, 4.5)
    assert target.reason == "of its time: second backward 75%; forward 25%"
    (target,) = missed(with_row(made_result(), row(DUAL, 39, 3.1)))
    assert target.reason == "its parts were not timed (part `phases`)"


def test_growth_is_that_of_the_ratio():
    (target,) = missed(with_row(made_result(), row(GRAPH, 200, 3.9)))
    assert target.measured == pytest.approx(1.3)
    assert target.details == "3.00 to 3.90; seconds grow 1.30 times"
    # Fixed weights take twice as long with 200 tasks, and so may the update.
    slower = with_row(made_result(), row(FIXED, 200, 1.0, fixed=0.4))
    assert not missed(with_row(slower, row(GRAPH, 200, 3.0, fixed=0.4)))


def test_memory_must_not_grow_with_tasks():
    (target,) = missed(with_row(made_result(), row(GRAPH, 200, 3.0, extra=3 * MILLION)))
    assert target.measured == 1.5
    assert target.reason == "1.0 MB more for 198 more tasks"
    nothing_extra = with_row(made_result(), row(GRAPH, 2, 3.0, extra=0))
    assert len(missed(nothing_extra)) == 1
    assert not missed(with_row(nothing_extra, row(GRAPH, 200, 3.0, extra=0)))


def test_a_whole_run_that_costs_too_much_says_how_often_updates_may_be():
    result = made_result()
    often = tuple(replace(run, every=10, ratio=1.2, whole=1.21) for run in result.schedule[:1])
    (target,) = missed(replace(result, schedule=(*often, *result.schedule[1:])))
    assert target.reason == "one of 10 steps takes 3.0: 1 + 2.0 / 10 = 1.200; an update every 20 steps would do"


def test_one_operation_too_many_after_convergence_is_too_many():
    (target,) = missed(replace(made_result(), settled=(Settled("net", 39, 901, 900, 930, 1.0, 1.0, 1.0),)))
    assert target.reason == "1 operations too many"


def test_what_was_not_measured_is_neither_met_nor_missed():
    found = targets(Result({}, {}))
    assert len(found) == 12
    assert all(target.met is None and target.outcome() == "not measured" for target in found)


def test_tables_have_rows_for_ways_and_columns_for_tasks():
    result = made_result()
    sheet = time_sheet(result, result.kinds[0])
    assert sheet.headings == ("", "K = 2", "K = 39", "K = 200")
    cells = {one[0].text: [cell.text for cell in one[1:]] for one in sheet.rows}
    assert cells[GRAPH] == ["3.0 ± 0.3"] * 3
    assert cells[TORCHJD] == ["2.0 ± 0.2", "39.0 ± 3.9", "-"]
    assert cells["fixed weights, in ms"] == ["200.0"] * 3
    assert f"-: {TORCHJD}: grows with K." in sheet.notes
    assert "n = 15 turns of each." in sheet.notes[0]
    memory = {one[0].text: [cell.text for cell in one[1:]] for one in memory_sheet(result, result.kinds[0]).rows}
    assert memory["fixed weights, all of it"][0] == "10.0 (2.50 P)"
    assert memory[GRAPH][0] == "2.0 (0.50 P)"
    assert memory[TORCHJD] == ["8.0 (2.00 P)", "156.0 (39.00 P)", "-"]


def test_fewer_turns_are_told():
    result = with_row(made_result(), replace(row(TORCHJD, 39, 39.0), n=5))
    result = replace(result, refusals=(*result.refusals, Refusal(RESNET.name, GRAPH, 39, "it broke")))
    notes = time_sheet(result, result.kinds[0]).notes
    assert f"n = 15 turns of each; 5 of {TORCHJD}." in notes[0]
    assert f"-: {GRAPH} stopped early: it broke." in notes


def test_all_tables_are_there_and_missed_targets_say_why():
    result = with_row(made_result(), row(GRAPH, 39, 5.0))
    made = markdown(sheets(result, targets(result)))
    titles = ("time of a training step", "peak memory", "From K = 2 to K = 200", "whole run", "goes", "against inputs")
    assert all(words in made for words in titles)
    assert "| ResNet18: DualNumbers | x 1.00 | x 1.00 |" in made
    assert "**not met**" in made
    assert "Not met: ResNet18, K = 39: a step that updates, double\\_backward: of its time:" in made
    assert "TorchJD mtl\\_backward | x" not in made  # has no number at K = 200
    assert sheets(Result({}, {}), []) == []


def test_a_result_is_read_as_it_was_written(tmp_path):
    path = write(made_result(), tmp_path / "deep", {"targets": []})
    assert path.name == "cost.json"
    assert replace(read(path), kinds=()) == replace(made_result(), kinds=())
    assert read(path).kinds[0].ways == list(made_result().kinds[0].ways)
    path.write_text(json.dumps({"timings": []}))
    with pytest.raises(ValueError, match="is no result of `arml bench`"):
        read(path)


def test_figures_have_a_panel_for_each_kind(tmp_path):
    result = made_result()
    others = [replace(one, kind=kind) for kind in ("a", "b", "c") for one in result.timings]
    facts = [replace(result.kinds[0], name=kind) for kind in ("a", "b", "c")]
    four = replace(result, timings=(*result.timings, *others), kinds=(*result.kinds, *facts))
    made = charts(four)
    assert [chart.key for chart in made] == ["cost", "cost-2", "memory", "memory-2"]
    assert [panel.title for chart in made[:2] for panel in chart.panels] == ["ResNet18", "a", "b", "c"]
    torchjd = made[0].panels[0].series[-1]
    assert (torchjd.name, torchjd.x, torchjd.y) == (TORCHJD, [2, 39], [2.0, 39.0])
    memory = {series.name: series.y for series in made[2].panels[0].series}
    assert memory[TORCHJD] == [2.0, 39.0]
    assert FIXED not in memory
    assert charts(Result({}, {})) == []

    write(four, tmp_path, {})
    assert Cost(TORCHJD, 39, 39.0, pytest.approx(35.1), pytest.approx(42.9), "b") in collect([tmp_path]).costs
