"""The verdict as a table, with its rules below."""

from arml.report.data.decision import MARGIN
from arml.report.data.summary import FORMULA
from arml.report.data.verdict import Finding, Verdict, Verdicts
from arml.report.tables.sheet import Cell, Sheet, difference, number, text, weight_cell
from arml.report.titles import line_title, subject_title

RULES = (
    "helps: without the task the error is higher. drop it: without the task the error is lower. makes no difference: "
    f"the 95 % interval lies within ±{MARGIN:g} point. All three are corrected by Holm for the number of tasks. cannot "
    "tell yet: everything else.",
    "without it: the error without the task minus the error with it, paired on seeds; * where the interval excludes 0, "
    "not corrected.",
    "final weight: 1 is an equal share. cosine: of its gradient and the main one, mean over recorded steps. "
    f"All numbers: {FORMULA}.",
)


def verdict_sheet(found: Verdicts) -> Sheet:
    """The evidence and the verdict, task by task."""
    return Sheet(
        f"Verdict on each auxiliary task: {subject_title(found.comparison.subject)}, {line_title(found.line)}",
        ("task", "verdict", "final weight", "cosine", "without it", "n"),
        tuple(_cells(verdict) for verdict in found.tasks),
        RULES,
        brief=False,
    )


def _cells(verdict: Verdict) -> tuple[Cell, ...]:
    left_out = difference(verdict.without.difference) if verdict.without else text("not run")
    return (
        text(verdict.task),
        Cell(verdict.finding.value, strong=verdict.finding in (Finding.HELPS, Finding.DROP)),
        weight_cell(verdict.weight),
        number(verdict.agreement),
        left_out,
        Cell(f"{verdict.weight.n}", verdict.weight.n),
    )
