"""The verdict in words and as a table."""

from collections.abc import Sequence

from arml.report.data.summary import FORMULA, Summary, paired_difference
from arml.report.data.verdict import SWITCHED_OFF, Finding, Verdict, Verdicts
from arml.report.tables.sheet import Cell, Sheet, difference, number, text
from arml.report.titles import line_title, subject_title

FEW = 4
"""Of so many auxiliary tasks every one is told about in words."""


def overall(found: Verdicts) -> list[str]:
    """Did the method differ from equal weights, and did the main task alone do as well?"""
    comparison, line, _ = found
    name, errors = line_title(line), comparison.errors(line)
    if len(errors) < 2:
        return [f"{name} has one finished seed only: nothing can be said about it."]
    uniform = paired_difference(errors, comparison.errors(comparison.reference[line]))
    main_only = comparison.main_only()
    alone = paired_difference(errors, comparison.errors(main_only)) if main_only else None
    return [_against_uniform(name, uniform), _against_main_only(name, alone)]


def _against_uniform(name: str, found: Summary | None) -> str:
    if found is None or found.n < 2:
        return f"{name} cannot be compared with uniform weights: fewer than two seeds have both."
    if not found.excludes_zero():
        return f"No difference between {name} and uniform weights is established: {_paired(found)}."
    return f"{name} {'did better' if found.mean < 0 else 'did worse'} than uniform weights: {_paired(found)}."


def _against_main_only(name: str, found: Summary | None) -> str:
    if found is None or found.n < 2:
        return f"Whether the main task alone does as well as {name} was not run on two seeds or more."
    if found.excludes_zero() and found.mean < 0:
        return f"{name} did better than training on the main task alone: {_paired(found)}."
    if found.excludes_zero():
        return f"Training on the main task alone did better than {name}: {_paired(found)}."
    return (
        f"Training on the main task alone did as well as {name}, as far as {found.n} seeds can tell: {_paired(found)}."
    )


def _paired(found: Summary) -> str:
    return f"paired difference of the error {_points(found)}"


def _points(found: Summary) -> str:
    return f"{difference(found).text.rstrip('*')} points, n = {found.n}"


def in_words(found: Verdicts) -> list[str]:
    """A sentence for each task, or of many tasks one for each kind of finding."""
    if len(found.tasks) <= FEW:
        return [words(verdict) for verdict in found.tasks]
    kinds = {kind: [verdict for verdict in found.tasks if verdict.finding is kind] for kind in Finding}
    return [_listed(kind, members) for kind, members in kinds.items() if members]


def _listed(kind: Finding, members: Sequence[Verdict]) -> str:
    if kind in (Finding.NO_EVIDENCE, Finding.NOTHING):
        return f"{kind.value}: {', '.join(verdict.task for verdict in members)}."
    named = ", ".join(f"{verdict.task} ({verdict.evidence.weight})" for verdict in members)
    return f"{kind.value}: {named}, with the final weight where 1 is an equal share."


def words(verdict: Verdict) -> str:
    """A sentence with the evidence."""
    return f"{verdict.task}: {verdict.finding.value}. {_reason(verdict)}"


def _reason(verdict: Verdict) -> str:
    weight, agreement, without = verdict.evidence
    if verdict.finding is Finding.NOTHING:
        return f"There is one seed only; its weight there is {weight}."
    parts = [f"Weight {weight} (n = {weight.n}), where 1 is an equal share"]
    if agreement is not None:
        parts.append(f"agreement of its gradient with the main one {agreement.shown(3)}")
    if without is None:
        parts.append("not tested by leaving it out")
    else:
        parts.append(f"leaving it out changes the error by {_points(without)}")
    return f"{'; '.join(parts)}."


RULES = (
    "helps: without the task the error rises by more than the interval; (by its weight only): that was not run, but "
    "weight and agreement exceed 1 and 0 by more than their intervals.",
    f"switched off: the whole interval of the weight lies below {SWITCHED_OFF:g}. harms: without it the error falls by "
    "more than the interval. no evidence: everything else.",
    "final weight: 1 is an equal share. agreement: <g_0, g_k> / <g_0, g_0>, mean over recorded steps.",
    f"error without it: minus the error with it, paired on seeds, * where the interval excludes 0. All: {FORMULA}.",
    "Intervals are not corrected for the number of tasks: of 40 findings two may be chance.",
)


def verdict_sheet(found: Verdicts) -> Sheet:
    """Task by task."""
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
