"""What an update may cost, and whether it costs more."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from arml.bench.contenders import DIFFERENCES, DUAL, FIXED, GRAPH
from arml.bench.problems import RESNET
from arml.bench.recommended_run import RUN_STEPS, SKIPPING, UPDATING, run_ratio
from arml.bench.result import RecommendedStep, Result, SettledCost, StepCost, WholeRun
from arml.bench.whole_run import STEPS

KIND = RESNET.name
FEW, MANY, MOST = 2, 39, 200
"""The numbers K of auxiliary tasks in the targets."""
UPDATE = {GRAPH: 4.5, DUAL: 3.0, DIFFERENCES: 3.0}
"""Limits for a step that updates at K = 39, in steps with fixed weights: one engine without a closure, two with one."""
GROWTH = 1.25
"""The factor by which time and extra memory may grow from K = 2 to K = 200."""
WHOLE_RUN = 1.10
RECOMMENDED_STEPS = {
    UPDATING: (3.0, "a gradient kept as a graph, and a second backward pass"),
    SKIPPING: (1.0, "all tasks share their inputs here, so only the passes through heads are saved"),
}
"""Limits for steps of the recommended method at K = 39, in steps with fixed weights, and what their time goes into."""


@dataclass(frozen=True)
class CostTarget:
    """A limit for one measured number."""

    name: str
    limit: float
    measured: float | None
    """``None``: not measured."""
    details: str = ""
    """The measurements that the number comes from."""
    reason: str = ""
    """What the measurements say about why the target is not met."""

    @property
    def met(self) -> bool | None:
        """Whether the target is met; ``None``: not measured."""
        return None if self.measured is None else self.measured <= self.limit

    def outcome(self) -> str:
        """The same in words."""
        return {None: "not measured", True: "met", False: "not met"}[self.met]


def judge_targets(result: Result) -> list[CostTarget]:
    """All targets, judged by ``result``."""
    return [
        *(_update_target(result, name, limit) for name, limit in UPDATE.items()),
        *(_growth_target(result, name) for name in UPDATE),
        *(_memory_target(result, name) for name in UPDATE),
        *_whole_run_targets(result),
        *_settled_targets(result),
        *(_recommended_target(result, name, *limit) for name, limit in RECOMMENDED_STEPS.items()),
        _recommended_run_target(result),
    ]


def _update_target(result: Result, name: str, limit: float) -> CostTarget:
    title = f"{KIND}, K = {MANY}: a step that updates, {name}"
    update, fixed = result.timing(KIND, name, MANY), result.timing(KIND, FIXED, MANY)
    if update is None or fixed is None:
        return CostTarget(title, limit, None)
    details = f"{1000 * update.median:.0f} ms against {1000 * fixed.median:.0f} ms"
    return CostTarget(title, limit, update.ratio, details, _time_shares(result, name))


def _time_shares(result: Result, name: str) -> str:
    """The parts of the step, largest first; those of central differences are not timed."""
    if name == DIFFERENCES:
        return "a backward pass for the direction and two more passes forward"
    parts = [phase for phase in result.phases if phase.closure == (name == DUAL) and phase.kind == KIND]
    shares = [f"{one.name} {one.share:.0%}" for one in sorted(parts, key=lambda one: -one.share)]
    return f"of its time: {'; '.join(shares)}" if shares else "its parts were not timed (part `phases`)"


def _ends(result: Result, name: str) -> tuple[StepCost, StepCost] | None:
    few, most = result.timing(KIND, name, FEW), result.timing(KIND, name, MOST)
    return None if few is None or most is None else (few, most)


def _growth_target(result: Result, name: str) -> CostTarget:
    title = f"{KIND}, K = {FEW} to {MOST}: growth of the ratio, {name}"
    ends = _ends(result, name)
    if ends is None:
        return CostTarget(title, GROWTH, None)
    few, most = ends
    details = f"{few.ratio:.2f} to {most.ratio:.2f}; seconds grow {most.median / few.median:.2f} times"
    uncertain = few.spread() / few.ratio + most.spread() / most.ratio
    reason = f"quartiles of the two ratios lie within {uncertain:.0%} of their medians"
    return CostTarget(title, GROWTH, most.ratio / few.ratio, details, reason)


def _memory_target(result: Result, name: str) -> CostTarget:
    title = f"{KIND}, K = {FEW} to {MOST}: growth of extra memory, {name}"
    ends, facts = _ends(result, name), next((one for one in result.kinds if one.name == KIND), None)
    if ends is None or facts is None or ends[0].extra_bytes is None or ends[1].extra_bytes is None:
        return CostTarget(title, GROWTH, None)
    few, most = ends[0].extra_bytes, ends[1].extra_bytes
    p = 4 * facts.parameters
    details = f"{few / p:.2f} P to {most / p:.2f} P, P the shared parameters' {p / 1e6:.1f} MB"
    # An update that needs nothing beyond a plain step cannot grow by a factor.
    measured = most / few if few > 0 else (math.inf if most > 0 else 1.0)
    return CostTarget(title, GROWTH, measured, details, f"{(most - few) / 1e6:.1f} MB more for {MOST - FEW} more tasks")


def _whole_run_targets(result: Result) -> Iterator[CostTarget]:
    for closure in (False, True):
        title = f"a whole run of {STEPS} steps with the default schedule, {'with a' if closure else 'no'} closure"
        found = [run for run in result.schedule if run.closure == closure]
        yield from (_whole_run_target(result, run, title) for run in found)
        if not found:
            yield CostTarget(title, WHOLE_RUN, None)


def _whole_run_target(result: Result, run: WholeRun, title: str) -> CostTarget:
    details = (
        f"K = {run.num_aux}; {run.ratio:.3f} in the long run, with an update every {run.every} steps; half of "
        f"{run.blocks} pairs of blocks between {run.low:.3f} and {run.high:.3f}"
    )
    update = result.timing(run.kind, DUAL if run.closure else GRAPH, run.num_aux)
    return CostTarget(
        title, WHOLE_RUN, run.whole, details, "" if update is None else _explain_overhead(run.every, update.ratio)
    )


def _explain_overhead(every: int, ratio: float) -> str:
    """Why a whole run costs so much, and how rare updates would have to be.

    >>> _explain_overhead(10, 3.5)
    'one of 10 steps takes 3.5: 1 + 2.5 / 10 = 1.250; an update every 25 steps would do'
    """
    enough = math.ceil((ratio - 1) / (WHOLE_RUN - 1) - 1e-9)
    expected = 1 + (ratio - 1) / every
    return (
        f"one of {every} steps takes {ratio:.1f}: 1 + {ratio - 1:.1f} / {every} = {expected:.3f}; "
        f"an update every {enough} steps would do"
    )


def _settled_targets(result: Result) -> Iterator[CostTarget]:
    title = "a step after the weights have settled: operations"
    yield from (_settled_target(one, title) for one in result.settled)
    if not result.settled:
        yield CostTarget(title, 1.0, None)


def _settled_target(one: SettledCost, title: str) -> CostTarget:
    details = (
        f"{one.operations} against {one.fixed_operations} with fixed weights, {one.by_hand_operations} with a sum "
        f"by hand; time {one.ratio:.3f} ({one.low:.3f} to {one.high:.3f})"
    )
    reason = f"{one.operations - one.fixed_operations} operations too many"
    return CostTarget(title, 1.0, one.operations / one.fixed_operations, details, reason)


def _recommended_target(result: Result, name: str, limit: float, reason: str) -> CostTarget:
    title = f"{KIND}, K = {MANY}: recommended method, a step: {name}"
    found = next((one for one in result.recommended if one.name == name), None)
    if found is None:
        return CostTarget(title, limit, None)
    return CostTarget(title, limit, found.ratio, _quartiles(found), reason)


def _quartiles(step: RecommendedStep) -> str:
    return f"half of {step.n} pairs of steps between {step.low:.2f} and {step.high:.2f}"


def _recommended_run_target(result: Result) -> CostTarget:
    """A short run; the reason says what an update might cost if the other steps stayed as they are."""
    title = f"{KIND}, K = {MANY}: recommended method, a run of {RUN_STEPS} steps with its own schedule"
    if not result.recommended:
        return CostTarget(title, WHOLE_RUN, None)
    parts = [one for one in result.recommended if one.in_run]
    details = "; ".join(f"{one.in_run} steps of {one.ratio:.3f}, {one.name}" for one in parts)
    whole, steps = run_ratio(parts), sum(one.in_run for one in parts)
    updates = next(one for one in parts if one.name == UPDATING)
    enough = updates.ratio - (whole - WHOLE_RUN) * steps / updates.in_run
    return CostTarget(title, WHOLE_RUN, whole, details, f"an update would have to take {enough:.2f}")
