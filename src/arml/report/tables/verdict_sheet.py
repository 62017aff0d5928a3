"""The verdict as a table, with its rules below."""

from arml.report.data.summary import FORMULA
from arml.report.data.verdict import SWITCHED_OFF, Finding, Verdict, Verdicts
from arml.report.tables.sheet import Cell, Sheet, difference, number, text
from arml.report.titles import line_title, subject_title

RULES = (
    "helps: without the task the error rises by more than the interval. helps (by its weight only): no runs leave it "
    "out, but its weight exceeds 1 and its agreement exceeds 0, each by more than its interval.",
    f"switched off: the whole interval of the weight lies below {SWITCHED_OFF:g}. harms: without the task the error "
    "falls by more than the interval. no evidence: everything else.",
    "final weight: 1 is an equal share. agreement: <g_0, g_k> / <g_0, g_0>, mean over recorded steps.",
    "error without it: the error without the task minus the error with it, paired on seeds; * where the interval "
    f"excludes 0. All numbers: {FORMULA}.",
    "Intervals are not corrected for the number of tasks: two of 40 findings may be chance.",
)


def verdict_sheet(found: Verdicts) -> Sheet:
    """The evidence and the verdict, task by task."""
    return Sheet(
        f"Verdict on each auxiliary task: {subject_title(found.comparison.subject)}, {line_title(found.line)}",
        ("auxiliary task", "verdict", "final weight", "agreement", "error without it", "n"),
        tuple(_cells(verdict) for verdict in found.tasks),
        RULES,
        brief=False,
    )


def _cells(verdict: Verdict) -> tuple[Cell, ...]:
    weight, agreement, without = verdict.evidence
    left_out = difference(without) if without else text("not run")
    return (
        text(verdict.task),
        Cell(verdict.finding.value, strong=verdict.finding in (Finding.HELPS, Finding.HARMS, Finding.SWITCHED_OFF)),
        number(weight),
        number(agreement, digits=3),
        left_out,
        Cell(f"{weight.n}", weight.n),
    )
