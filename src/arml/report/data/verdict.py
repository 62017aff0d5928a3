"""The verdict on each auxiliary task, as far as the intervals allow.

*helps*: without the task the error rises by more than the interval. If no runs leave it out: its weight exceeds 1 and
the agreement of its gradient exceeds 0, each by more than its interval; the weights are then the only evidence.
*harms*: without the task the error falls by more than the interval, and its weight is not near 0.
*switched off*: the whole interval of its weight lies below 0.2, a fifth of an equal share.
*no evidence*: everything else. With fewer than two seeds there is no verdict.
"""

from collections import Counter
from enum import Enum
from typing import NamedTuple

from arml.lab.run import Line
from arml.report.data.comparison import Comparison
from arml.report.data.curves import mean_over_training
from arml.report.data.summary import Summary, paired_difference, summarise
from arml.report.titles import ARMLS

SWITCHED_OFF = 0.2
"""A task is switched off if the whole interval of its weight lies below this; 1 is an equal share."""


class Finding(Enum):
    """The verdict on a task, in a word or two."""

    HELPS = "helps"
    HELPS_BY_WEIGHT = "helps (by its weight only)"
    HARMS = "harms"
    SWITCHED_OFF = "switched off"
    NO_EVIDENCE = "no evidence"
    NOTHING = "nothing can be said"


class Evidence(NamedTuple):
    """What is known about an auxiliary task."""

    weight: Summary
    """The final weight, over seeds."""
    agreement: Summary | None
    """<g_0, g_k> / <g_0, g_0>, mean over training, over seeds."""
    without: Summary | None
    """Error without the task minus error with it, paired on seeds; ``None`` if that was not run."""


class Verdict(NamedTuple):
    """The verdict on one auxiliary task."""

    task: str
    finding: Finding
    evidence: Evidence


class Verdicts(NamedTuple):
    """The verdicts on all auxiliary tasks of a line."""

    comparison: Comparison
    line: Line
    tasks: list[Verdict]


def verdicts(comparison: Comparison) -> list[Verdicts]:
    """The verdicts of finished lines with a variant of ARML: learners with the most lines first, then ARML itself."""
    num_lines = Counter(line.learner for line, runs in comparison.finished.items() if runs)
    lines = sorted(comparison.lines_with(ARMLS), key=lambda line: (-num_lines[line.learner], ARMLS.index(line.method)))
    return [
        Verdicts(comparison, line, [_verdict(comparison, line, task) for task in comparison.weights(line)])
        for line in lines
    ]


def _verdict(comparison: Comparison, line: Line, task: str) -> Verdict:
    evidence = _evidence(comparison, line, task)
    return Verdict(task, finding(evidence), evidence)


def _evidence(comparison: Comparison, line: Line, task: str) -> Evidence:
    agreement = [*mean_over_training(comparison.finished[line], "agreement", task).values()]
    return Evidence(
        summarise([*comparison.weights(line)[task].values()]),
        summarise(agreement) if agreement else None,
        _difference_without(comparison, line, task),
    )


def _difference_without(comparison: Comparison, line: Line, task: str) -> Summary | None:
    """Under the line's own method if that was run, else under equal weights."""
    for full in (line, comparison.reference[line]):
        left_out = comparison.errors(full._replace(variant=f"without {task}"))
        if left_out:
            return paired_difference(left_out, comparison.errors(full), overlap=comparison.overlap())
    return None


def finding(evidence: Evidence) -> Finding:
    """The finding, by the rules above."""
    weight, agreement, without = evidence
    if weight.n < 2:
        return Finding.NOTHING
    if without is not None and without.excludes_zero() and without.mean > 0:
        return Finding.HELPS
    if weight.high < SWITCHED_OFF:
        return Finding.SWITCHED_OFF
    if without is not None and without.excludes_zero():
        return Finding.HARMS
    agrees = agreement is not None and agreement.excludes_zero() and agreement.mean > 0
    if without is None and weight.low > 1 and agrees:
        return Finding.HELPS_BY_WEIGHT
    return Finding.NO_EVIDENCE
