"""The main table: every contender on one kind of network, against the number K of auxiliary tasks."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from arml.bench.contenders import FIXED, Contender
from arml.bench.problems import Kind, Problem
from arml.bench.result import KindFacts, Refusal, StepCost
from arml.bench.timing import Plan, Step, Tick, Timing, peak_bytes, rounds_that_fit, time_all, try_step, turns

MAX_SLOW = 39
"""The largest K at which contenders that grow with K are measured."""
PATIENCE = 1.0
"""Seconds that a step of such a contender may take in a quick look."""
TOO_SLOW = f"grows with K and is measured up to K = {MAX_SLOW}"


class Case(NamedTuple):
    """A contender and a number of auxiliary tasks."""

    name: str
    num_aux: int


class KindCosts(NamedTuple):
    """The outcome for one kind of network."""

    facts: KindFacts
    timings: list[StepCost]
    refusals: list[Refusal]


def kind_costs(
    kind: Kind, compared: Sequence[Contender], num_aux: Sequence[int], plan: Plan, *, batch: int | None, tick: Tick
) -> KindCosts:
    """Time and memory of all cases.

    The contenders at one K share one problem: each of them does the same to it.
    """
    problems = {k: Problem(kind, k, batch, plan.device) for k in sorted(num_aux)}
    steps = {Case(one.name, k): one.make(problem) for k, problem in problems.items() for one in compared}
    rare = {Case(one.name, k) for one in compared for k in problems if one.grows}
    # Warm-up, timing and memory each get a third of the bar: the number of turns is known only after the warm-up.
    third = len(steps)
    first, refused = warm_up(steps, rare, plan, lambda done, _: tick(done, 3 * third))
    due = turns(list(first), rounds_that_fit(first, rare, plan), rare)
    timings, failed = time_all(
        {case: steps[case] for case in first}, due, plan, lambda done, of: tick(third + third * done // of, 3 * third)
    )
    wanted = [case for case in timings if case not in failed and not (plan.brief and case in rare)]
    peaks: dict[Case, int | None] = {}
    for done, case in enumerate(wanted, start=1):
        peaks[case] = _peak(steps[case], problems[case.num_aux], plan)
        tick(2 * third + third * done // len(wanted), 3 * third)
    reasons = [Refusal(kind.name, *case, reason) for case, reason in (refused | failed).items()]
    return KindCosts(_facts(problems, compared), compare_with_fixed(kind.name, timings, peaks), reasons)


def _facts(problems: Mapping[int, Problem], compared: Sequence[Contender]) -> KindFacts:
    any_of_them = next(iter(problems.values()))
    names = tuple(one.name for one in compared)
    return KindFacts(any_of_them.kind.name, any_of_them.batch, any_of_them.num_parameters(), names)


def warm_up(
    steps: Mapping[Case, Step], rare: Collection[Case], plan: Plan, tick: Tick
) -> tuple[dict[Case, float], dict[Case, str]]:
    """Take one turn of each case: its seconds, or why it has none (it does not work, or would take too long)."""
    first: dict[Case, float] = {}
    refused: dict[Case, str] = {}
    for done, (case, step) in enumerate(steps.items(), start=1):
        reason = _reason_to_skip(case, first, plan) if case in rare else ""
        taken, reason = (0.0, reason) if reason else try_step(step, plan)
        if reason:
            refused[case] = reason
        else:
            first[case] = taken
        tick(done, len(steps))
    return first, refused


def _reason_to_skip(case: Case, first: Mapping[Case, float], plan: Plan) -> str:
    """Why a contender that grows with K is not worth a turn; an empty line if it is."""
    if case.num_aux > MAX_SLOW:
        return TOO_SLOW
    fewer = [k for name, k in first if name == case.name]
    if not plan.brief or not fewer:
        return ""
    expected = first[Case(case.name, fewer[-1])] * (1 + case.num_aux) / (1 + fewer[-1])
    return f"a step would take about {expected:.0f} s, too long for a quick look" if expected > PATIENCE else ""


def _peak(step: Step, problem: Problem, plan: Plan) -> int | None:
    """The peak memory of ``step``. All steps start without the gradients of the step before, so that theirs count."""
    found: list[int] = []
    problem.optimizer.zero_grad()
    try_step(lambda: found.append(peak_bytes(step, plan.device)), plan)
    return found[0] if found else None


def compare_with_fixed(kind: str, timings: Mapping[Case, Timing], peaks: Mapping[Case, int | None]) -> list[StepCost]:
    """Seconds and bytes of every case, and both relative to the step with fixed weights at the same K."""
    costs = []
    for case, timing in timings.items():
        fixed = Case(FIXED, case.num_aux)
        peak, usual = peaks.get(case), peaks.get(fixed)
        extra = None if peak is None or usual is None else peak - usual
        ratio = timing.median / timings[fixed].median
        costs.append(StepCost(kind, case.name, case.num_aux, *timing, ratio=ratio, peak_bytes=peak, extra_bytes=extra))
    return costs
