"""The main table: every way on one kind of network, against the number K of auxiliary tasks."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from arml.bench.contenders import FIXED, Way
from arml.bench.peers import Step
from arml.bench.problems import Kind, Problem
from arml.bench.result import KindFacts, Refusal, Row
from arml.bench.timing import Count, Plan, Timing, peak_bytes, rounds_that_fit, time_all, tried, turns

MAX_SLOW = 39
"""The largest K at which ways that grow with K are measured."""
PATIENCE = 1.0
"""Seconds that a step of such a way may take in a brief look."""
TOO_SLOW = f"grows with K and is measured up to K = {MAX_SLOW}"


class Case(NamedTuple):
    """A way, and how many auxiliary tasks it has."""

    name: str
    num_aux: int


class Costs(NamedTuple):
    """What came out on one kind."""

    facts: KindFacts
    rows: list[Row]
    refusals: list[Refusal]


def costs_of(
    kind: Kind, ways: Sequence[Way], num_aux: Sequence[int], plan: Plan, *, batch: int | None, count: Count
) -> Costs:
    """Time and memory of all cases. The ways of a K share one problem: what each of them does to it is the same."""
    problems = {k: Problem(kind, k, batch, plan.device) for k in sorted(num_aux)}
    steps = {Case(way.name, k): way.make(problem) for k, problem in problems.items() for way in ways}
    rare = {Case(way.name, k) for way in ways for k in problems if way.grows}
    share = len(steps)  # of the bar, for each of three parts: how many turns there will be is known after the first
    first, refused = warm_up(steps, rare, plan, lambda done, _: count(done, 3 * share))
    due = turns(list(first), rounds_that_fit(first, rare, plan), rare)
    timings, failed = time_all(
        {case: steps[case] for case in first}, due, plan, lambda done, of: count(share + share * done // of, 3 * share)
    )
    wanted = [case for case in timings if case not in failed and not (plan.brief and case in rare)]
    peaks: dict[Case, int | None] = {}
    for done, case in enumerate(wanted, start=1):
        peaks[case] = _peak(steps[case], problems[case.num_aux], plan)
        count(2 * share + share * done // len(wanted), 3 * share)
    reasons = [Refusal(kind.name, *case, reason) for case, reason in (refused | failed).items()]
    return Costs(_facts(problems, ways), rows_of(kind.name, timings, peaks), reasons)


def _facts(problems: Mapping[int, Problem], ways: Sequence[Way]) -> KindFacts:
    any_of_them = next(iter(problems.values()))
    names = tuple(way.name for way in ways)
    return KindFacts(any_of_them.kind.name, any_of_them.batch, any_of_them.num_parameters(), names)


def warm_up(
    steps: Mapping[Case, Step], rare: Collection[Case], plan: Plan, count: Count
) -> tuple[dict[Case, float], dict[Case, str]]:
    """One turn of each: its seconds or, where it does not work or would take too long, why there is none."""
    first: dict[Case, float] = {}
    refused: dict[Case, str] = {}
    for done, (case, step) in enumerate(steps.items(), start=1):
        reason = _too_slow(case, first, plan) if case in rare else ""
        taken, reason = (0.0, reason) if reason else tried(step, plan)
        if reason:
            refused[case] = reason
        else:
            first[case] = taken
        count(done, len(steps))
    return first, refused


def _too_slow(case: Case, first: Mapping[Case, float], plan: Plan) -> str:
    if case.num_aux > MAX_SLOW:
        return TOO_SLOW
    fewer = [k for name, k in first if name == case.name]
    if not plan.brief or not fewer:
        return ""
    expected = first[Case(case.name, fewer[-1])] * (1 + case.num_aux) / (1 + fewer[-1])
    return f"a step would take about {expected:.0f} s, too long for a quick look" if expected > PATIENCE else ""


def _peak(step: Step, problem: Problem, plan: Plan) -> int | None:
    """From the same start for all: without gradients of the step before, so that those of this step count."""
    found: list[int] = []
    problem.optimizer.zero_grad()
    tried(lambda: found.append(peak_bytes(step, plan.device)), plan)
    return found[0] if found else None


def rows_of(kind: str, timings: Mapping[Case, Timing], peaks: Mapping[Case, int | None]) -> list[Row]:
    """Seconds and bytes, and both against the step with fixed weights at the same K."""
    rows = []
    for case, timing in timings.items():
        fixed = Case(FIXED, case.num_aux)
        peak, usual = peaks.get(case), peaks.get(fixed)
        extra = None if peak is None or usual is None else peak - usual
        ratio = timing.median / timings[fixed].median
        rows.append(Row(kind, case.name, case.num_aux, *timing, ratio=ratio, peak_bytes=peak, extra_bytes=extra))
    return rows
