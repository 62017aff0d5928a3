"""How cost changes with the size of the batch and of the network."""

from collections.abc import Mapping
from dataclasses import replace

from arml.bench.contenders import DUAL, FIXED, GRAPH, contenders
from arml.bench.costs import KindCosts, kind_costs
from arml.bench.problems import MLP, Kind
from arml.bench.result import ScaledCost
from arml.bench.timing import Plan, Tick
from arml.lab.models.mlp import mlp

BATCHES = (8, 16, 32, 64, 128)
WIDTHS = (64, 256, 1024, 2048)
BATCH, PARAMETERS = "inputs in a batch", "shared parameters"


def costs_over_batches(kind: Kind, num_aux: int, plan: Plan, tick: Tick) -> list[ScaledCost]:
    """The cost on ``kind`` with batches of other sizes."""
    return _costs_over_sizes(BATCH, {batch: (kind, batch) for batch in BATCHES}, num_aux, plan, tick)


def costs_over_parameters(num_aux: int, plan: Plan, tick: Tick) -> list[ScaledCost]:
    """The cost on multilayer perceptrons of other widths; values are P."""
    kinds = {width: _mlp_of_width(width) for width in WIDTHS}
    found = _costs_over_sizes(PARAMETERS, {width: (kind, None) for width, kind in kinds.items()}, num_aux, plan, tick)
    sizes = {width: sum(p.numel() for p in kind.trunk().parameters()) for width, kind in kinds.items()}
    return [replace(one, value=sizes[one.value]) for one in found]


def _mlp_of_width(width: int) -> Kind:
    return replace(MLP, trunk=lambda: mlp(MLP.example[0], width, num_layers=3), num_features=width)


def _costs_over_sizes(
    axis: str, sizes: Mapping[int, tuple[Kind, int | None]], num_aux: int, plan: Plan, tick: Tick
) -> list[ScaledCost]:
    compared = [one for one in contenders() if one.name in (FIXED, GRAPH, DUAL)]
    found = []
    for done, (value, (kind, batch)) in enumerate(sizes.items(), start=1):
        costs = kind_costs(kind, compared, [num_aux], plan, batch=batch, tick=lambda *_: None)
        found += _costs_at_size(axis, value, costs)
        tick(done, len(sizes))
    return found


def _costs_at_size(axis: str, value: int, costs: KindCosts) -> list[ScaledCost]:
    return [
        ScaledCost(axis, value, one.name, 1000 * one.median, one.ratio, one.peak_bytes, one.extra_bytes)
        for one in costs.timings
    ]
