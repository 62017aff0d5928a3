"""What to do, per experiment: one recommendation, how sure it is, and a verdict on each auxiliary task.

The judged line (the recommended method, if it was run), equal weights and the main task alone are compared with each
other: three paired comparisons, corrected together. Every other line is then compared with what came out, corrected
for the number of those lines; so is every simple model. A line is recommended only if it is established that its
result is better: the error lower or, where networks are chosen by average precision, that higher.
"""

import math
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from arml.lab.catalogue import GRID_SEARCH
from arml.lab.run import Line
from arml.report.data.comparison import Comparison
from arml.report.data.decision import Decision, Outcome, decide
from arml.report.data.labels_needed import LabelsFactor, labels_factor
from arml.report.data.measure import Measure
from arml.report.data.summary import Summary, paired_differences, summarise
from arml.report.data.topics import Topic
from arml.report.data.verdict import Verdict, verdicts
from arml.report.titles import CONSTANTS, KNOWN_AT_PREDICTION, MAIN_ONLY, SIMPLE


class Advice(Enum):
    """What the answer recommends."""

    LINE = "train with the chosen line"
    ALONE = "train on the main task alone"
    UNIFORM = "take equal weights, not learned ones"
    SIMPLE = "use a simple model"
    EITHER = "it makes no difference"
    OPEN = "cannot tell yet"
    ONE_SEED = "one seed says nothing"
    NOTHING = "nothing to compare"


class Answer(NamedTuple):
    """The answer of one experiment. Differences are those of shortfalls in points: less is better."""

    comparison: Comparison
    advice: Advice
    line: Line | None
    """The line that the answer is about: the recommended one or, if nothing is established, the judged one."""
    result: Summary | None
    """Its result on the test examples."""
    uniform: Line | None
    """Its learner with equal weights."""
    against_alone: Decision | None
    """The line minus the main task alone."""
    against_uniform: Decision | None
    """The line minus equal weights."""
    chosen_among: int = 1
    """From how many lines it was chosen."""
    simple: tuple[str, Decision] | None = None
    """The best simple model, and that model minus the line."""
    as_inputs: Decision | None = None
    """A regression with the auxiliary columns as inputs, minus the line."""
    constant: tuple[str, float] | None = None
    """A constant answer whose mean error is not higher than the line's."""
    tasks: Sequence[Verdict] = ()
    judged: Line | None = None
    """The line whose weights stand beside the verdicts."""
    against_judged: Decision | None = None
    """Where equal weights are recommended: they minus the judged line."""
    labels_factor: LabelsFactor | None = None
    """How many times as many labels the main task alone needs for the same result."""

    def alone_result(self) -> Summary | None:
        """That of the main task alone."""
        alone = self.comparison.main_only_line()
        return _mean_result(self.comparison, alone) if alone else None

    def judged_result(self) -> Summary | None:
        """That of the judged line."""
        return _mean_result(self.comparison, self.judged) if self.judged else None

    def uniform_result(self) -> Summary | None:
        """That of equal weights."""
        return _mean_result(self.comparison, self.uniform) if self.uniform else None

    def model_result(self, decision: Decision) -> float:
        """The mean result of a model that was compared with the line; NaN if they share no seed."""
        measure = self.measure()
        if self.result is None or decision.difference is None:
            return math.nan
        return measure.value(measure.shortfall(self.result.mean) + decision.difference.mean)

    def measure(self) -> Measure:
        """What the answer is about: the error, or the measure that chose the networks."""
        return self.comparison.measure()


def make_answer(comparison: Comparison, topics: Sequence[Topic] = ()) -> Answer:
    """The answer on one experiment; ``topics`` hold the same experiment at several numbers of labels."""
    found = verdicts(comparison)
    judged = found[0].line if found else None
    answer = _choose(comparison, judged)._replace(judged=judged, tasks=found[0].tasks if found else ())
    answer = _challenge(answer)
    answer = _compare_simple_models(answer)
    return answer._replace(labels_factor=_labels_factor(answer, topics))


def _choose(comparison: Comparison, judged: Line | None) -> Answer:
    """The answer from the judged line, equal weights and the main task alone."""
    alone, uniform = comparison.main_only_line(), _uniform_line(comparison, judged)
    rivals = [line for line in (judged, uniform, alone) if line is not None]
    decided = _decide_pairs(comparison, rivals)

    def answer(advice: Advice, line: Line | None) -> Answer:
        def against(other: Line | None) -> Decision | None:
            return decided.get((line, other)) if line and other else None

        result = _mean_result(comparison, line) if line else None
        return Answer(comparison, advice, line, result, uniform, against(alone), against(uniform))

    if not decided:
        return answer(Advice.NOTHING, judged or uniform or alone)
    if all(one.difference is None or one.difference.n < 2 for one in decided.values()):
        return answer(Advice.ONE_SEED, judged or uniform)
    beats = {pair for pair, one in decided.items() if one.outcome is Outcome.LESS}
    line = judged or uniform
    if line is not None and uniform is not None and (uniform, line) in beats:
        if alone is None:
            return answer(Advice.UNIFORM, uniform)._replace(against_judged=decided[uniform, line])
        line = uniform
    rival = alone or uniform
    for one in dict.fromkeys((line, uniform)):
        if one is not None and (one, rival) in beats:
            return answer(Advice.LINE, one)
    if alone is not None and (alone, line) in beats:
        return answer(Advice.ALONE, alone)
    same = line is not None and rival is not None and decided.get((line, rival))
    return answer(Advice.EITHER if same and same.outcome is Outcome.SAME else Advice.OPEN, line)


def _uniform_line(comparison: Comparison, judged: Line | None) -> Line | None:
    """The line with equal weights that the judged line, or any other, is compared with."""
    wanted = [comparison.reference[judged]] if judged else [*dict.fromkeys(comparison.reference.values())]
    return next((line for line in wanted if comparison.shortfalls(line)), None)


def _decide_pairs(comparison: Comparison, lines: Sequence[Line]) -> dict[tuple[Line, Line], Decision]:
    """All pairs with a common seed, decided as one family, in both directions."""
    pairs = [(a, b) for i, a in enumerate(lines) for b in lines[i + 1 :]]
    differences = {(a, b): _differences(comparison, a, b) for a, b in pairs}
    known = {pair: found for pair, found in differences.items() if found}
    decided = dict(zip(known, decide([*known.values()], comparison.seeds()), strict=True))
    return decided | {(b, a): one.flip() for (a, b), one in decided.items()}


def _challenge(answer: Answer) -> Answer:
    """Replaces the line by another one if that is established to be better, corrected for the number of other lines."""
    comparison, alone = answer.comparison, answer.comparison.main_only_line()
    others = [line for line in _candidates(comparison) if line not in (answer.line, answer.uniform)]
    base = alone if answer.advice in (Advice.OPEN, Advice.EITHER) and alone else answer.line
    if not others or base is None or answer.advice in (Advice.NOTHING, Advice.ONE_SEED):
        return answer
    decided = decide([_differences(comparison, line, base) for line in others], comparison.seeds())
    better = [line for line, one in zip(others, decided, strict=True) if one.outcome is Outcome.LESS]
    if not better:
        return answer
    best = min(better, key=lambda line: summarise([*comparison.shortfalls(line).values()]).mean)
    uniform = comparison.reference[best]
    rivals = [line for line in (alone, uniform) if line not in (None, best) and comparison.shortfalls(line)]
    decided = decide([_differences(comparison, best, line) for line in rivals], comparison.seeds())
    against: dict[Line | None, Decision] = dict(zip(rivals, decided, strict=True))
    first = against.get(alone or uniform)
    if first is not None and first.outcome is not Outcome.LESS:
        return answer
    return answer._replace(
        advice=Advice.LINE,
        line=best,
        result=_mean_result(comparison, best),
        uniform=uniform,
        against_alone=against.get(alone),
        against_uniform=against.get(uniform),
        chosen_among=len(others) + 1,
    )


def _candidates(comparison: Comparison) -> list[Line]:
    """Lines that may be recommended. Grid search may not: it trains many times; nor may lines that leave a task out."""
    return [
        line
        for line, runs in comparison.finished.items()
        if runs and not line.variant and line.method != GRID_SEARCH and line.learner not in (*MAIN_ONLY, *SIMPLE)
    ]


def _compare_simple_models(answer: Answer) -> Answer:
    """Adds the best simple model, which becomes the recommendation if it is established to be better."""
    found = _simple_models(answer.comparison)
    if answer.line is None or not found:
        return answer
    line = answer.comparison.shortfalls(answer.line)
    tried = [name for name in found if name not in CONSTANTS]
    family = [paired_differences(found[name], line) for name in tried]
    decided = dict(zip(tried, decide(family, answer.comparison.seeds()), strict=True))
    answer = answer._replace(as_inputs=decided.pop(KNOWN_AT_PREDICTION, None))
    means = {name: summarise([*by_seed.values()]).mean for name, by_seed in found.items()}
    constant = min((name for name in found if name in CONSTANTS), key=lambda name: means[name], default=None)
    if constant and answer.result and means[constant] <= answer.result.mean:
        answer = answer._replace(constant=(constant, means[constant]))
    if not decided:
        return answer
    better = [name for name, one in decided.items() if one.outcome is Outcome.LESS]
    best = min(better or decided, key=lambda name: means[name])
    return answer._replace(simple=(best, decided[best]), advice=Advice.SIMPLE if better else answer.advice)


def _simple_models(comparison: Comparison) -> dict[str, dict[int, float]]:
    """The shortfall of every simple model, by seed: those that have lines, and those that every line carries along.

    All lines carry the same, since they are trained on the same labels. These are known by their errors alone.
    """
    lines = [line for line in comparison.finished if line.learner in SIMPLE]
    found = {line.learner: comparison.shortfalls(line) for line in lines if comparison.shortfalls(line)}
    if not comparison.measure().is_error():
        return found
    for runs in comparison.finished.values():
        for seed, run in runs.items():
            for name, error in run.outcome.get("yardsticks", {}).items():
                found.setdefault(name, {}).setdefault(seed, float(error))
    return found


def _labels_factor(answer: Answer, topics: Sequence[Topic]) -> LabelsFactor | None:
    alone = answer.comparison.main_only_line()
    if answer.advice is not Advice.LINE or answer.line is None or alone is None:
        return None
    subject = answer.comparison.subject
    topic = next((one for one in topics if one.subject[:3] == subject[:3]), None)
    return labels_factor(topic, answer.line, alone, subject.labels) if topic else None


def _differences(comparison: Comparison, ours: Line, theirs: Line) -> list[float]:
    return paired_differences(comparison.shortfalls(ours), comparison.shortfalls(theirs))


def _mean_result(comparison: Comparison, line: Line) -> Summary | None:
    results = comparison.results(line, comparison.measure().name)
    return summarise([*results.values()]) if results else None
