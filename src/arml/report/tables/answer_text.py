"""The answer in words: one source for the terminal, the page, Markdown and LaTeX.

No sentence claims more than its interval allows; ``decision`` says what may be claimed.
"""

import math
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from arml.lab.own_loop import OwnLoop
from arml.report.data.answer import Advice, Answer
from arml.report.data.decision import MARGIN, MOST_SEEDS, Decision, Outcome
from arml.report.data.labels_needed import LabelsFactor
from arml.report.data.measure import ERROR, Measure
from arml.report.data.summary import FORMULA, OVERLAP_FORMULA, Summary
from arml.report.data.verdict import Finding, Verdict
from arml.report.tables.other_models import other_models
from arml.report.tables.own_loop_words import COMPARE, try_without
from arml.report.tables.phrases import better_seeds, join_names, model_name, percent, points
from arml.report.tables.sheet import format_weight
from arml.report.titles import experiment_title, short_title

MOST_LINES = 10
"""Lines of an answer on the terminal."""
FEW_NAMES = 2
"""Up to this many tasks on a line have their notes beside them."""
FIRST_SEEDS = 5
"""Seeds that a first look needs."""
ALONE, UNIFORM = "the main task alone", "uniform weights"
RULE = (
    "Lower or higher: paired t tests over seeds at 5 %, corrected by Holm for all comparisons of one kind. No "
    f"difference: the 95 % interval lies within ±{MARGIN:g} point, corrected in the same way. Seeds still needed: for "
    "a power of 80 %, if mean and spread stay as they are. If no seed differs, the spread counts as if one seed "
    "differed by one test example."
)


class Badge(NamedTuple):
    """The verdict on a task, in a word or two and with what speaks for it or would tell."""

    task: str
    finding: Finding
    note: str
    tried: bool = True
    """Whether there are runs without the task."""


class AnswerText(NamedTuple):
    """The answer of one experiment, in words."""

    title: str
    """The experiment."""
    headline: str
    """What to do."""
    number: str
    """One number to remember; empty if there is none."""
    number_note: str
    sure: list[str]
    """How sure it is, and what else to know."""
    badges: list[Badge]
    evidence: list[str]
    """Differences with their intervals, and the rules."""
    setting: str = ""
    """For commands."""
    compares: bool = True
    """Whether there was something to compare."""

    def lines(self, width: int | None = None) -> list[str]:
        """The answer for a terminal: at most ``MOST_LINES`` lines, also when broken at ``width``, the title first.

        Where not all of it fits, what is said last of how sure it is gives way first.
        """
        sure, badges = list(self.sure), [*_badge_lines(self.badges, self.setting)]
        while (sure or badges) and _height([self.title, self.headline, *sure, *badges], width) > MOST_LINES:
            (sure or badges).pop()
        return [self.title, self.headline, *sure, *badges]


def _height(lines: Sequence[str], width: int | None) -> int:
    return sum(len(textwrap.wrap(line, width)) if width else 1 for line in lines)


def answer_text(answer: Answer) -> AnswerText:
    """The answer in words."""
    number, number_note = _number(answer)
    setting = answer.comparison.subject.setting
    return AnswerText(
        experiment_title(answer.comparison.subject, len(answer.tasks)),
        _headline(answer) + ".",
        number,
        number_note,
        [*_how_sure(answer)],
        _sort([badge(task, setting, answer.measure()) for task in answer.tasks]),
        [*_evidence(answer), *_rules(answer)],
        setting,
        answer.advice is not Advice.NOTHING,
    )


def _rules(answer: Answer) -> list[str]:
    return [RULE, f"Intervals: {OVERLAP_FORMULA if answer.comparison.overlap() else FORMULA}."]


def _name(answer: Answer) -> str:
    return short_title(answer.line) if answer.line else ""


def _headline(answer: Answer) -> str:
    name, result, setting = _name(answer), _result(answer), answer.comparison.subject.setting
    if answer.advice is Advice.LINE:
        return f"Train with {name}: {result} instead of {_instead(answer)}{_keep_and_drop(answer.tasks)}"
    if answer.advice is Advice.ALONE:
        return f"Train on the main task alone: {result}, and the auxiliary tasks cost more than they give"
    if answer.advice is Advice.UNIFORM:
        return f"Take {UNIFORM}: {result} instead of {_with_judged(answer)}"
    if answer.advice is Advice.SIMPLE and answer.simple:
        model, decision = answer.simple
        measure, size = answer.measure(), points(decision)
        than = f"{measure.better()} than that of {name} ({percent(answer.result)})"
        return f"Use {model_name(model)}: its {measure.title()} is {size} {than}"
    if answer.advice is Advice.EITHER:
        rival = ALONE if answer.against_alone else UNIFORM
        return f"Keep it simple, take {rival}: {name} makes no difference of more than {MARGIN:g} point"
    if answer.advice is Advice.ONE_SEED:
        return f"One seed says nothing: add {_seeds(FIRST_SEEDS, setting)}"
    if answer.advice is Advice.OPEN:
        rival = ALONE if answer.against_alone else UNIFORM
        would_tell = what_would_tell(answer.against_alone or answer.against_uniform, setting)
        return f"Cannot tell yet whether {name} beats {rival}: {would_tell}"
    return f"Nothing to compare yet: {_missing(answer)}"


def _result(answer: Answer) -> str:
    return f"{percent(answer.result)} {answer.measure().title()}"


def _with_judged(answer: Answer) -> str:
    return f"{percent(answer.judged_result())} with {short_title(answer.judged)}" if answer.judged else ""


def _instead(answer: Answer) -> str:
    if answer.against_alone is not None:
        return f"{percent(answer.alone_result())} on {ALONE}"
    return f"{percent(answer.uniform_result())} with {UNIFORM}"


def _missing(answer: Answer) -> str:
    if answer.line is None:
        return "no run has finished"
    is_own = answer.comparison.subject.setting == OwnLoop.setting
    advice = COMPARE if is_own else "`arml compare` trains what it is compared with"
    return f"no other line than {_name(answer)} has finished; {advice}"


def _keep_and_drop(tasks: Sequence[Verdict]) -> str:
    drop = [one.task for one in tasks if one.finding is Finding.DROP]
    keep = [one.task for one in tasks if one.finding is Finding.HELPS]
    parts = [f"{verb} {join_names(names)}" for verb, names in (("drop", drop), ("keep", keep)) if names]
    return "".join(f"; {part}" for part in parts)


def _number(answer: Answer) -> tuple[str, str]:
    """The result of what is recommended, and what it stands against."""
    title = answer.measure().title()
    if answer.advice is Advice.LINE:
        return percent(answer.result), f"{title} instead of {_instead(answer)}"
    if answer.advice is Advice.UNIFORM:
        return percent(answer.result), f"{title} instead of {_with_judged(answer)}"
    if answer.advice is Advice.SIMPLE and answer.simple and answer.simple[1].difference and answer.result:
        return (
            f"{answer.model_result(answer.simple[1]):.1f} %",
            f"{title} with {model_name(answer.simple[0])}, {percent(answer.result)} with {_name(answer)}",
        )
    if answer.result is None:
        return "", ""
    return percent(answer.result), f"{title} {'on' if answer.advice is Advice.ALONE else 'with'} {_name(answer)}"


def _how_sure(answer: Answer) -> Iterator[str]:
    alone, uniform, better = answer.against_alone, answer.against_uniform, answer.measure().better()
    if answer.advice is Advice.LINE and (alone or uniform):
        decision = alone or uniform
        among = f", the best of {answer.chosen_among} lines" if answer.chosen_among > 1 else ""
        few = _few(decision, answer.comparison.subject.setting)
        yield f"How sure: {better} on {better_seeds(decision)}{among}{few}."
    if answer.advice is Advice.UNIFORM and answer.against_judged:
        few = _few(answer.against_judged, answer.comparison.subject.setting)
        yield f"How sure: {better} on {better_seeds(answer.against_judged)}{few}."
    if alone is not None and uniform is not None and answer.advice is not Advice.ONE_SEED:
        yield _uniform_sentence(answer, uniform)
    if answer.labels_factor is not None:
        yield from _labels_sentence(answer.labels_factor)
    if answer.advice is Advice.SIMPLE:
        decision = answer.simple[1] if answer.simple else None
        yield f"How sure: {better} on {better_seeds(decision)}. A simpler model wins here."
    yield from other_models(answer, _name(answer))


def _uniform_sentence(answer: Answer, decision: Decision) -> str:
    name, theirs, measure = _name(answer), percent(answer.uniform_result()), answer.measure()
    if decision.outcome is Outcome.LESS:
        return f"With {UNIFORM} it would be {theirs}: {name} is {measure.better()} on {better_seeds(decision)}."
    if decision.outcome is Outcome.MORE:
        return f"With {UNIFORM} it would be {theirs}: {name} is {measure.worse()} on {better_seeds(decision.flip())}."
    if decision.outcome is Outcome.SAME:
        return f"{UNIFORM.capitalize()} do as well, within {MARGIN:g} point: {theirs}."
    setting = answer.comparison.subject.setting
    would_tell = what_would_tell(decision, setting)
    if answer.advice is Advice.OPEN and would_tell == what_would_tell(answer.against_alone, setting):
        return f"Nor whether it beats {UNIFORM} ({theirs})."
    return f"Whether {name} beats {UNIFORM} ({theirs}): cannot tell yet, {would_tell}."


def _labels_sentence(found: LabelsFactor) -> Iterator[str]:
    if found.factor.excludes_one() and found.factor.low > 1:
        size = f"{'more than ' if found.at_least else 'about '}{found.factor.mean:.1f}"
        yield f"Without the auxiliary tasks {size} times as many labels would be needed."


def what_would_tell(decision: Decision | None, setting: str) -> str:
    """How many further seeds are expected to settle it, or what else would.

    >>> what_would_tell(Decision(Outcome.OPEN, Summary(-4.0, 9.9, 3), 2, 1, 7.0), "dg")
    'about 7 more seeds are expected to settle it: --seeds 10'
    """
    if decision is None or decision.difference is None or decision.further is None:
        return f"one seed says nothing, add {_seeds(FIRST_SEEDS, setting)}"
    if decision.needs_rows:
        return "more labelled rows would tell, more seeds of these rows would not"
    if math.isinf(decision.further):
        return f"more than {MOST_SEEDS} more seeds would be needed"
    more, total = int(decision.further), decision.difference.n + int(decision.further)
    return f"about {more} more seed{' is' if more == 1 else 's are'} expected to settle it: {_seeds(total, setting)}"


def _seeds(count: int, setting: str) -> str:
    """The option that gives so many seeds; no command trains a loop of the user's own."""
    return f"{count} seeds" if setting == OwnLoop.setting else f"--seeds {count}"


def _sort(badges: Sequence[Badge]) -> list[Badge]:
    """By finding, what is established first."""
    return sorted(badges, key=lambda one: [*Finding].index(one.finding))


def badge(verdict: Verdict, setting: str, measure: Measure = ERROR) -> Badge:
    """The badge of a task."""
    if verdict.without is None or verdict.without.difference is None:
        return Badge(verdict.task, verdict.finding, f"not tried without it: {_command(setting, [verdict.task])}", False)
    return Badge(verdict.task, verdict.finding, _note(verdict, verdict.without, setting, measure))


def _command(setting: str, tasks: Sequence[str]) -> str:
    """What tries it without these tasks; the two tasks of `ssl` are left out in any case."""
    if setting == OwnLoop.setting:
        return try_without(tasks)
    names = [] if setting == "ssl" else ["--without", *tasks]
    return shlex.join(["arml", "compare", setting, *names])


def _note(verdict: Verdict, decision: Decision, setting: str, measure: Measure) -> str:
    off = "; its weight is near 0" if verdict.is_switched_off() else ""
    if verdict.finding is Finding.HELPS:
        return f"{points(decision)} {'more' if measure.is_error() else 'less'} {measure.title()} without it"
    if verdict.finding is Finding.DROP:
        return f"{points(decision)} {'less' if measure.is_error() else 'more'} {measure.title()} without it{off}"
    if verdict.finding is Finding.SAME:
        return f"with or without it: the same within {MARGIN:g} point"
    return what_would_tell(decision, setting)


def _badge_lines(badges: Sequence[Badge], setting: str) -> Iterator[str]:
    """One line per kind of finding, and one for tasks without a try."""
    for finding in Finding:
        members = [one for one in badges if one.finding is finding and one.tried]
        if members:
            yield f"{finding.value}: {_list_with_notes(members)}"
    untried = [one.task for one in badges if not one.tried]
    if untried:
        tasks = untried if len(untried) <= FEW_NAMES else ["NAME"]
        yield f"{Finding.OPEN.value}: {join_names(untried)} (not tried without: {_command(setting, tasks)})"


def _list_with_notes(members: Sequence[Badge]) -> str:
    """Names with their notes: one note if they share it, each its own if they are few, else the first one's."""
    notes = list(dict.fromkeys(one.note for one in members))
    names = [one.task for one in members]
    if len(notes) == 1:
        return f"{join_names(names)} ({notes[0]})"
    if len(members) <= FEW_NAMES:
        return join_names([f"{one.task} ({one.note})" for one in members])
    return f"{join_names(names)} ({names[0]}: {notes[0]})" if members[0].finding is Finding.OPEN else join_names(names)


def _evidence(answer: Answer) -> Iterator[str]:
    measure = answer.measure()
    for rival, decision in ((ALONE, answer.against_alone), (UNIFORM, answer.against_uniform)):
        if decision is not None and decision.difference is not None:
            yield f"{_name(answer)} minus {rival}: {_difference(decision, measure)}."
    if answer.simple is not None and answer.simple[1].difference is not None:
        yield f"{model_name(answer.simple[0])} minus {_name(answer)}: {_difference(answer.simple[1], measure)}."
    for one in answer.tasks:
        if one.without is not None and one.without.difference is not None:
            without = _difference(one.without, measure)
            yield f"Without {one.task}, minus with it: {without}. Weight {_weight(one.weight)}."


def _weight(weight: Summary) -> str:
    return f"{format_weight(weight.mean)}" + (f" ± {format_weight(weight.half_width)}" if weight.n > 1 else "")


def _difference(decision: Decision, measure: Measure) -> str:
    if decision.difference is None:
        return ""
    found = measure.difference(decision.difference)
    interval = f" ± {found.half_width:.2f}" if found.n > 1 else ""
    return f"{found.mean:+.2f}{interval} points of the {measure.title()}, n = {found.n}"


def _few(decision: Decision | None, setting: str) -> str:
    found = decision.difference if decision else None
    return f"; few seeds, better {_seeds(FIRST_SEEDS, setting)}" if found and found.n < FIRST_SEEDS else ""
