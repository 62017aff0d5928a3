"""Figures of results made up by hand."""

from dataclasses import replace

import pytest
from bench.made_results import TORCHJD, cost_file, made_result

from arml.bench.contenders import FIXED
from arml.bench.cost_charts import charts, cost_chart
from arml.bench.result import Result, collect_costs


def test_figures_have_a_panel_for_each_kind():
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


def test_costs_of_kinds_and_contenders_are_kept_apart(tmp_path):
    chart = cost_chart(collect_costs([cost_file(tmp_path / "cost.json")])[0])
    assert [panel.title for panel in chart.panels] == ["MLP", "ResNet18"]
    fixed, pairwise, double = chart.panels[1].series
    assert (pairwise.x, pairwise.y) == ([2, 10], [2.0, 10.0])
    assert pairwise.low == pytest.approx([1.8, 9.0])
    assert double.y == [3.0, 3.0]
    assert fixed.name == "fixed weights"
    assert chart.alt.endswith(".")
