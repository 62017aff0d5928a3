"""Tables of results made up by hand."""

from dataclasses import replace

from bench.made_results import TORCHJD, cost, made_result, with_cost

from arml.bench.contenders import GRAPH
from arml.bench.cost_targets import judge_targets
from arml.bench.problems import RESNET
from arml.bench.result import Refusal, Result
from arml.bench.tables import memory_sheet, sheets, time_sheet
from arml.report.output.text import markdown


def test_tables_have_rows_for_contenders_and_columns_for_tasks():
    result = made_result()
    sheet = time_sheet(result, result.kinds[0])
    assert sheet.headings == ("", "K = 2", "K = 39", "K = 200")
    cells = {one[0].text: [cell.text for cell in one[1:]] for one in sheet.rows}
    assert cells[GRAPH] == ["3.0 ± 0.3"] * 3
    assert cells[TORCHJD] == ["2.0 ± 0.2", "39.0 ± 3.9", "-"]
    assert cells["fixed weights, in ms"] == ["200.0"] * 3
    assert f"-: {TORCHJD}: grows with K." in sheet.notes
    assert "n = 15 turns each." in sheet.notes[0]
    memory = {one[0].text: [cell.text for cell in one[1:]] for one in memory_sheet(result, result.kinds[0]).rows}
    assert memory["fixed weights, all of it"][0] == "10.0 (2.50 P)"
    assert memory[GRAPH][0] == "2.0 (0.50 P)"
    assert memory[TORCHJD] == ["8.0 (2.00 P)", "156.0 (39.00 P)", "-"]


def test_fewer_turns_are_noted():
    result = with_cost(made_result(), replace(cost(TORCHJD, 39, 39.0), n=5))
    result = replace(result, refusals=(*result.refusals, Refusal(RESNET.name, GRAPH, 39, "it broke")))
    notes = time_sheet(result, result.kinds[0]).notes
    assert f"n = 15 turns each; 5 for {TORCHJD}." in notes[0]
    assert f"-: {GRAPH} stopped early: it broke." in notes


def test_all_tables_are_there_and_missed_targets_say_why():
    result = with_cost(made_result(), cost(GRAPH, 39, 5.0))
    made = markdown(sheets(result, judge_targets(result)))
    titles = ("time of a training step", "peak memory", "From K = 2 to K = 200", "whole run", "goes", "against inputs")
    assert all(words in made for words in titles)
    assert "| ResNet18: DualNumbers | x 1.00 | x 1.00 |" in made
    assert "**not met**" in made
    assert "Not met: ResNet18, K = 39: a step that updates, double\\_backward: of its time:" in made
    assert "| updates the weights | 2.200 | 2.100 to 2.300 | 15 | 30 |" in made
    assert "A run of 300 steps from its start: 1.075." in made
    assert "TorchJD mtl\\_backward | x" not in made  # has no number at K = 200
    assert sheets(Result({}, {}), []) == []
