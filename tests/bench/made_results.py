"""Results of `arml bench` made up by hand: no test depends on time."""

import json
from dataclasses import replace
from pathlib import Path

from arml.bench.contenders import DIFFERENCES, DUAL, FIXED, GRAPH
from arml.bench.problems import RESNET
from arml.bench.recommended_run import SKIPPING, UPDATING, WAITING
from arml.bench.result import (
    KindFacts,
    Phase,
    RecommendedStep,
    Refusal,
    Result,
    ScaledCost,
    SettledCost,
    StepCost,
    WholeRun,
)

MILLION = 1_000_000
TORCHJD = "TorchJD mtl_backward"
COSTS = {FIXED: 1.0, GRAPH: 3.0, DUAL: 2.5, DIFFERENCES: 2.0}
"""Ratios that do not depend on K."""


def cost(name, num_aux, ratio, *, kind=RESNET.name, fixed=0.2, extra=2 * MILLION):
    """A step with fixed weights takes 0.2 s and 10 MB; quartiles lie 10 % below and above the median."""
    median, more = ratio * fixed, 0 if name == FIXED else extra
    return StepCost(kind, name, num_aux, median, 0.9 * median, 1.1 * median, 15, ratio, 10 * MILLION + more, more)


def made_result():
    """Everything is met: one million parameters, costs that do not grow; TorchJD grows, and has no number at 200."""
    facts = KindFacts(RESNET.name, 64, MILLION, (*COSTS, TORCHJD))
    timings = [cost(name, k, ratio) for k in (2, 39, 200) for name, ratio in COSTS.items()]
    timings += [cost(TORCHJD, k, float(k), extra=4 * k * MILLION) for k in (2, 39)]
    return Result(
        {"brief": False},
        {"torch": "2"},
        (facts,),
        tuple(timings),
        (Refusal(RESNET.name, TORCHJD, 200, "grows with K"),),
        tuple(
            WholeRun(RESNET.name, 39, closure, 30, 5, 200.0, ratio, ratio - 0.01, ratio + 0.01, 1000, ratio)
            for closure, ratio in ((False, 1.07), (True, 1.05))
        ),
        (SettledCost(RESNET.name, 39, 900, 900, 930, 1.01, 0.99, 1.02),),
        (
            Phase(RESNET.name, 39, False, "forward", 150.0, 0.25),
            Phase(RESNET.name, 39, False, "second backward", 450.0, 0.75),
        ),
        (),
        tuple(ScaledCost("inputs in a batch", 8, name, 100.0, r, 10, 5) for name, r in list(COSTS.items())[:3]),
        recommended=made_steps(2.2),
    )


def made_steps(update):
    """Steps of the recommended method: one in ten updates the weights and takes ``update``."""
    numbers = {UPDATING: (30, update), WAITING: (270, 0.95), SKIPPING: (0, 0.8)}
    return tuple(
        RecommendedStep(RESNET.name, 39, name, in_run, 15, ratio, ratio - 0.1, ratio + 0.1)
        for name, (in_run, ratio) in numbers.items()
    )


def with_cost(result, changed):
    """``result`` with ``changed`` instead of the measurement of the same case."""
    case = (changed.kind, changed.name, changed.num_aux)
    others = [one for one in result.timings if (one.kind, one.name, one.num_aux) != case]
    return replace(result, timings=(*others, changed))


def cost_file(path: Path) -> Path:
    """The part of a cost.json that reports read, on two networks: one engine costs 3 at every K, another one K."""
    timings = [
        {
            "kind": kind,
            "name": name,
            "num_aux": k,
            "ratio": ratio,
            "median": ratio,
            "low": 0.9 * ratio,
            "high": 1.1 * ratio,
        }
        for kind in ("MLP", "ResNet18")
        for k in (2, 10)
        for name, ratio in (("fixed weights", 1.0), ("pairwise", float(k)), ("double_backward", 3.0))
    ]
    path.write_text(json.dumps({"timings": timings}))
    return path
