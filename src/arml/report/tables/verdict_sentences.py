"""The verdict in sentences that claim no more than the intervals allow."""

from collections.abc import Sequence

from arml.report.data.summary import Summary, paired_difference
from arml.report.data.verdict import Finding, Verdict, Verdicts
from arml.report.tables.sheet import difference
from arml.report.titles import line_title

MOST_SENTENCES = 4
"""Up to this many auxiliary tasks, each has a sentence of its own."""


def overall_sentences(found: Verdicts) -> list[str]:
    """Did the method differ from equal weights, and did the main task alone do as well?"""
    comparison, line, _ = found
    name, errors = line_title(line), comparison.errors(line)
    if len(errors) < 2:
        return [f"{name} has only one finished seed: no conclusion is possible."]
    uniform = paired_difference(errors, comparison.errors(comparison.reference[line]), overlap=comparison.overlap())
    main_only = comparison.main_only_line()
    alone = paired_difference(errors, comparison.errors(main_only), overlap=comparison.overlap()) if main_only else None
    return [_uniform_sentence(name, uniform), _main_only_sentence(name, alone)]


def _uniform_sentence(name: str, found: Summary | None) -> str:
    if found is None or found.n < 2:
        return f"{name} cannot be compared with uniform weights: fewer than two seeds have both."
    if not found.excludes_zero():
        return f"No difference between {name} and uniform weights is established: {_difference_phrase(found)}."
    verb = "did better" if found.mean < 0 else "did worse"
    return f"{name} {verb} than uniform weights: {_difference_phrase(found)}."


def _main_only_sentence(name: str, found: Summary | None) -> str:
    if found is None or found.n < 2:
        return f"{name} cannot be compared with training on the main task alone: fewer than two seeds have both."
    evidence = _difference_phrase(found)
    if found.excludes_zero() and found.mean < 0:
        return f"{name} did better than training on the main task alone: {evidence}."
    if found.excludes_zero():
        return f"Training on the main task alone did better than {name}: {evidence}."
    return f"Training on the main task alone did as well as {name}, as far as {found.n} seeds can tell: {evidence}."


def _difference_phrase(found: Summary) -> str:
    return f"paired difference of the error {_points(found)}"


def _points(found: Summary) -> str:
    return f"{difference(found).text.rstrip('*')} points, n = {found.n}"


def task_sentences(found: Verdicts) -> list[str]:
    """A sentence for each task or, if there are many tasks, for each kind of finding."""
    if len(found.tasks) <= MOST_SENTENCES:
        return [verdict_sentence(verdict) for verdict in found.tasks]
    kinds = {kind: [verdict for verdict in found.tasks if verdict.finding is kind] for kind in Finding}
    return [_kind_sentence(kind, members) for kind, members in kinds.items() if members]


def _kind_sentence(kind: Finding, members: Sequence[Verdict]) -> str:
    if kind in (Finding.NO_EVIDENCE, Finding.NOTHING):
        return f"{kind.value}: {', '.join(verdict.task for verdict in members)}."
    tasks = ", ".join(f"{verdict.task} ({verdict.evidence.weight})" for verdict in members)
    return f"{kind.value}: {tasks}. Final weights in brackets; 1 is an equal share."


def verdict_sentence(verdict: Verdict) -> str:
    """A task's verdict with its evidence."""
    return f"{verdict.task}: {verdict.finding.value}. {_evidence_sentence(verdict)}"


def _evidence_sentence(verdict: Verdict) -> str:
    weight, agreement, without = verdict.evidence
    if verdict.finding is Finding.NOTHING:
        return f"Only one seed has finished; its weight is {weight}."
    parts = [f"Weight {weight} (n = {weight.n}), where 1 is an equal share"]
    if agreement is not None:
        parts.append(f"agreement of its gradient with the main one {agreement.format(3)}")
    if without is None:
        parts.append("not tested by leaving it out")
    else:
        parts.append(f"leaving it out changes the error by {_points(without)}")
    return f"{'; '.join(parts)}."
