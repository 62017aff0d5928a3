"""The verdict as a table, with its rules below."""

from arml.report.data.decision import MARGIN
from arml.report.data.measure import Measure
from arml.report.data.summary import FORMULA
from arml.report.data.verdict import Finding, Verdict, Verdicts
from arml.report.tables.sheet import Cell, Sheet, difference, number, text, weight_cell
from arml.report.titles import line_title, subject_title

RULES = (
    "helps: without the task the result is worse. drop it: without the task the result is better. makes no difference: "
    f"the 95 % interval lies within ±{MARGIN:g} point. All three are corrected by Holm for the number of tasks. cannot "
    "tell yet: everything else.",
    "without it: {measure} without the task minus {measure} with it, paired on seeds; * where the interval excludes 0, "
    "not corrected.",
    "final weight: 1 is an equal share. cosine: of its gradient and the main one, mean over recorded steps. "
    f"All numbers: {FORMULA}.",
)


def verdict_sheet(found: Verdicts) -> Sheet:
    """The evidence and the verdict, task by task."""
    measure = found.comparison.measure()
    return Sheet(
        f"Verdict on each auxiliary task: {subject_title(found.comparison.subject)}, {line_title(found.line)}",
        ("task", "verdict", "final weight", "cosine", "without it", "n"),
        tuple(_cells(verdict, measure) for verdict in found.tasks),
        tuple(rule.format(measure=measure.title()) for rule in RULES),
        brief=False,
    )


def _cells(verdict: Verdict, measure: Measure) -> tuple[Cell, ...]:
    found = verdict.without.difference if verdict.without else None
    without = text("not run") if verdict.without is None else difference(found and measure.difference(found))
    return (
        text(verdict.task),
        Cell(verdict.finding.value, strong=verdict.finding in (Finding.HELPS, Finding.DROP)),
        weight_cell(verdict.weight),
        number(verdict.agreement),
        without,
        Cell(f"{verdict.weight.n}", verdict.weight.n),
    )
