"""What the cost of an update should be, and whether it is."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from arml.bench.contenders import DIFFERENCES, DUAL, FIXED, GRAPH
from arml.bench.problems import RESNET
from arml.bench.result import Result, Row, Settled, WholeRun
from arml.bench.whole_run import STEPS

KIND = RESNET.name
FEW, MANY, MOST = 2, 39, 200
"""Numbers of auxiliary tasks K that targets speak of."""
UPDATE = {GRAPH: 4.5, DUAL: 3.0, DIFFERENCES: 3.0}
"""Steps with fixed weights that an update may take at K = 39: without a closure, and the two ways with one."""
GROWTH = 1.25
"""From K = 2 to K = 200, of time and of extra memory."""
WHOLE_RUN = 1.10


@dataclass(frozen=True)
class Target:
    """One number that was asked for."""

    name: str
    limit: float
    measured: float | None
    """``None``: what it is judged by was not measured."""
    details: str = ""
    """What the number comes from."""
    reason: str = ""
    """If it is not met: why, from what was measured."""

    @property
    def met(self) -> bool | None:
        """Whether it is; ``None``: nobody knows."""
        return None if self.measured is None else self.measured <= self.limit

    def outcome(self) -> str:
        """In a word or two."""
        return {None: "not measured", True: "met", False: "not met"}[self.met]


def targets(result: Result) -> list[Target]:
    """All of them, judged by ``result``."""
    return [
        *(_update(result, name, limit) for name, limit in UPDATE.items()),
        *(_growth(result, name) for name in UPDATE),
        *(_memory(result, name) for name in UPDATE),
        *_whole_runs(result),
        *_settled(result),
    ]


def _update(result: Result, name: str, limit: float) -> Target:
    title = f"{KIND}, K = {MANY}: a step that updates, {name}"
    row, fixed = result.row(KIND, name, MANY), result.row(KIND, FIXED, MANY)
    if row is None or fixed is None:
        return Target(title, limit, None)
    details = f"{1000 * row.median:.0f} ms against {1000 * fixed.median:.0f} ms"
    return Target(title, limit, row.ratio, details, _where_time_goes(result, name))


def _where_time_goes(result: Result, name: str) -> str:
    """The parts of the step, largest first; nothing is known about those of central differences."""
    if name == DIFFERENCES:
        return "a backward pass for the direction and two more passes forward"
    parts = [phase for phase in result.phases if phase.closure == (name == DUAL) and phase.kind == KIND]
    shown = [f"{one.name} {one.share:.0%}" for one in sorted(parts, key=lambda one: -one.share)]
    return f"of its time: {'; '.join(shown)}" if shown else "its parts were not timed (part `phases`)"


def _ends(result: Result, name: str) -> tuple[Row, Row] | None:
    few, most = result.row(KIND, name, FEW), result.row(KIND, name, MOST)
    return None if few is None or most is None else (few, most)


def _growth(result: Result, name: str) -> Target:
    title = f"{KIND}, K = {FEW} to {MOST}: growth of the ratio, {name}"
    ends = _ends(result, name)
    if ends is None:
        return Target(title, GROWTH, None)
    few, most = ends
    details = f"{few.ratio:.2f} to {most.ratio:.2f}; seconds grow {most.median / few.median:.2f} times"
    uncertain = few.spread() / few.ratio + most.spread() / most.ratio
    reason = f"quartiles of the two ratios lie within {uncertain:.0%} of their medians"
    return Target(title, GROWTH, most.ratio / few.ratio, details, reason)


def _memory(result: Result, name: str) -> Target:
    title = f"{KIND}, K = {FEW} to {MOST}: growth of extra memory, {name}"
    ends, facts = _ends(result, name), next((one for one in result.kinds if one.name == KIND), None)
    if ends is None or facts is None or ends[0].extra_bytes is None or ends[1].extra_bytes is None:
        return Target(title, GROWTH, None)
    few, most = ends[0].extra_bytes, ends[1].extra_bytes
    p = 4 * facts.parameters
    details = f"{few / p:.2f} P to {most / p:.2f} P, P the shared parameters' {p / 1e6:.1f} MB"
    # An update that needs nothing beyond a plain step cannot grow by a factor.
    measured = most / few if few > 0 else (math.inf if most > 0 else 1.0)
    return Target(title, GROWTH, measured, details, f"{(most - few) / 1e6:.1f} MB more for {MOST - FEW} more tasks")


def _whole_runs(result: Result) -> Iterator[Target]:
    for closure in (False, True):
        title = f"a whole run of {STEPS} steps with the default schedule, {'with a' if closure else 'no'} closure"
        found = [run for run in result.schedule if run.closure == closure]
        yield from (_whole_run(result, run, title) for run in found)
        if not found:
            yield Target(title, WHOLE_RUN, None)


def _whole_run(result: Result, run: WholeRun, title: str) -> Target:
    details = (
        f"K = {run.num_aux}; {run.ratio:.3f} in the long run, with an update every {run.every} steps; half of "
        f"{run.blocks} pairs of blocks between {run.low:.3f} and {run.high:.3f}"
    )
    update = result.row(run.kind, DUAL if run.closure else GRAPH, run.num_aux)
    return Target(title, WHOLE_RUN, run.whole, details, "" if update is None else _too_often(run.every, update.ratio))


def _too_often(every: int, ratio: float) -> str:
    """Why a whole run costs what it does.

    >>> _too_often(10, 3.5)
    'one of 10 steps takes 3.5: 1 + 2.5 / 10 = 1.250; an update every 25 steps would do'
    """
    enough = math.ceil((ratio - 1) / (WHOLE_RUN - 1) - 1e-9)
    expected = 1 + (ratio - 1) / every
    return (
        f"one of {every} steps takes {ratio:.1f}: 1 + {ratio - 1:.1f} / {every} = {expected:.3f}; "
        f"an update every {enough} steps would do"
    )


def _settled(result: Result) -> Iterator[Target]:
    title = "a step after the weights have settled: operations"
    yield from (_after(one, title) for one in result.settled)
    if not result.settled:
        yield Target(title, 1.0, None)


def _after(one: Settled, title: str) -> Target:
    details = (
        f"{one.operations} against {one.fixed_operations} with fixed weights, {one.by_hand_operations} with a sum "
        f"by hand; time {one.ratio:.3f} ({one.low:.3f} to {one.high:.3f})"
    )
    reason = f"{one.operations - one.fixed_operations} operations too many"
    return Target(title, 1.0, one.operations / one.fixed_operations, details, reason)
