"""How cost changes with the size of a batch and of the network."""

from collections.abc import Mapping
from dataclasses import replace

from arml.bench.contenders import DUAL, FIXED, GRAPH, ways
from arml.bench.costs import Costs, costs_of
from arml.bench.problems import MLP, Kind
from arml.bench.result import Scaled
from arml.bench.timing import Count, Plan
from arml.lab.models.mlp import mlp

BATCHES = (8, 16, 32, 64, 128)
WIDTHS = (64, 256, 1024, 2048)
BATCH, PARAMETERS = "inputs in a batch", "shared parameters"


def over_batches(kind: Kind, num_aux: int, plan: Plan, count: Count) -> list[Scaled]:
    """``kind`` with other batches."""
    return _scaled(BATCH, {batch: (kind, batch) for batch in BATCHES}, num_aux, plan, count)


def over_parameters(num_aux: int, plan: Plan, count: Count) -> list[Scaled]:
    """The multilayer perceptron with other widths; values are P."""
    kinds = {width: _as_wide(width) for width in WIDTHS}
    found = _scaled(PARAMETERS, {width: (kind, None) for width, kind in kinds.items()}, num_aux, plan, count)
    sizes = {width: sum(p.numel() for p in kind.trunk().parameters()) for width, kind in kinds.items()}
    return [replace(one, value=sizes[one.value]) for one in found]


def _as_wide(width: int) -> Kind:
    return replace(MLP, trunk=lambda: mlp(MLP.example[0], width, num_layers=3), num_features=width)


def _scaled(
    axis: str, sizes: Mapping[int, tuple[Kind, int | None]], num_aux: int, plan: Plan, count: Count
) -> list[Scaled]:
    compared = [way for way in ways() if way.name in (FIXED, GRAPH, DUAL)]
    found = []
    for done, (value, (kind, batch)) in enumerate(sizes.items(), start=1):
        costs = costs_of(kind, compared, [num_aux], plan, batch=batch, count=lambda *_: None)
        found += _rows(axis, value, costs)
        count(done, len(sizes))
    return found


def _rows(axis: str, value: int, costs: Costs) -> list[Scaled]:
    return [
        Scaled(axis, value, row.name, 1000 * row.median, row.ratio, row.peak_bytes, row.extra_bytes)
        for row in costs.rows
    ]
