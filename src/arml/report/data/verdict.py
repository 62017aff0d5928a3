"""The verdict on each auxiliary task: what leaving it out does to the result, as far as the intervals allow.

*helps*: without the task the result is worse. *drop it*: without the task the result is better. *makes no difference*:
the two results differ by less than the margin. *cannot tell yet*: everything else. The first three are corrected for
the number of tasks, see ``decision``. Weights and agreement stand beside the verdict: they are what the method
believes, not a test.
"""

from collections import Counter
from enum import Enum
from typing import NamedTuple

from arml.lab.run import Line
from arml.report.data.comparison import Comparison
from arml.report.data.curves import mean_over_training
from arml.report.data.decision import Decision, Outcome, decide
from arml.report.data.summary import Summary, paired_differences, summarise
from arml.report.titles import ARMLS, USUAL

SWITCHED_OFF = 0.2
"""A task is switched off if the whole interval of its weight lies below this; 1 is an equal share."""


class Finding(Enum):
    """The verdict on a task, in a word or two."""

    HELPS = "helps"
    DROP = "drop it"
    SAME = "makes no difference"
    OPEN = "cannot tell yet"


_FINDINGS = {Outcome.MORE: Finding.HELPS, Outcome.LESS: Finding.DROP, Outcome.SAME: Finding.SAME}


class Verdict(NamedTuple):
    """The verdict on one auxiliary task, with its evidence."""

    task: str
    finding: Finding
    weight: Summary
    """The final weight, over seeds."""
    agreement: Summary | None
    """The cosine of its gradient and the main one, mean over training, over seeds; ``None`` in older records."""
    without: Decision | None
    """Shortfall without the task minus that with it, paired on seeds; ``None`` if that was not run."""

    def is_switched_off(self) -> bool:
        """Whether the method itself has nearly switched the task off, on more than one seed."""
        return self.weight.n > 1 and self.weight.high < SWITCHED_OFF


class Verdicts(NamedTuple):
    """The verdicts on all auxiliary tasks of a line."""

    comparison: Comparison
    line: Line
    tasks: list[Verdict]

    def were_tried(self) -> bool:
        """Whether there are runs without some task; otherwise no verdict can be more than "cannot tell yet"."""
        return any(verdict.without is not None for verdict in self.tasks)


def verdicts(comparison: Comparison) -> list[Verdicts]:
    """The verdicts of finished lines with a variant of ARML.

    Learners with the most lines come first, of several the usual one; then methods in their order.
    """
    num_lines = Counter(line.learner for line, runs in comparison.finished.items() if runs)

    def order(line: Line) -> tuple[int, bool, int]:
        return -num_lines[line.learner], line.learner not in USUAL, ARMLS.index(line.method)

    lines = sorted(comparison.lines_with(ARMLS), key=order)
    return [Verdicts(comparison, line, _judge_tasks(comparison, line)) for line in lines]


def _judge_tasks(comparison: Comparison, line: Line) -> list[Verdict]:
    tasks = list(comparison.weights(line))
    differences = {task: _differences_without(comparison, line, task, alone=len(tasks) == 1) for task in tasks}
    known = {task: found for task, found in differences.items() if found is not None}
    decided = dict(zip(known, decide([*known.values()], comparison.seeds()), strict=True))
    return [_verdict(comparison, line, task, decided.get(task)) for task in tasks]


def _verdict(comparison: Comparison, line: Line, task: str, without: Decision | None) -> Verdict:
    cosines = [*mean_over_training(comparison.finished[line], "cosine", task).values()]
    finding = Finding.OPEN if without is None else _FINDINGS.get(without.outcome, Finding.OPEN)
    weight = summarise([*comparison.weights(line)[task].values()])
    return Verdict(task, finding, weight, summarise(cosines) if cosines else None, without)


def _differences_without(comparison: Comparison, line: Line, task: str, *, alone: bool) -> list[float] | None:
    """Shortfall without the task minus that with it, by seed; ``None`` if that was not run.

    Under the line's own method if that was run, else under equal weights. Without its only auxiliary task a line is
    the main task alone.
    """
    for full in dict.fromkeys((line, comparison.reference[line])):
        left_out = comparison.main_only_line() if alone else full._replace(variant=f"without {task}")
        if left_out is not None and comparison.shortfalls(left_out):
            return paired_differences(comparison.shortfalls(left_out), comparison.shortfalls(full))
    return None
