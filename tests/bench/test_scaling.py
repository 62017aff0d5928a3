"""Other sizes: what is measured, not how long it takes."""

from arml.bench import scaling
from arml.bench.contenders import DUAL, FIXED, GRAPH
from arml.bench.problems import MLP
from arml.bench.timing import Plan

FEW = Plan(repeats=1)


def nothing(done, total):
    del done, total


def test_other_sizes_are_measured_with_and_without_updates(monkeypatch):
    monkeypatch.setattr(scaling, "BATCHES", (2, 4))
    monkeypatch.setattr(scaling, "WIDTHS", (8, 16))
    batches = scaling.costs_over_batches(MLP, 3, FEW, nothing)
    assert [(one.value, one.name) for one in batches] == [(b, name) for b in (2, 4) for name in (FIXED, GRAPH, DUAL)]
    assert all(one.ratio == 1 and one.extra_bytes == 0 for one in batches if one.name == FIXED)
    parameters = scaling.costs_over_parameters(3, FEW, nothing)
    # 100 inputs, three layers of 8 or 16: 100 w + w, and twice w w + w.
    assert list(dict.fromkeys(one.value for one in parameters)) == [808 + 2 * 72, 1616 + 2 * 272]
