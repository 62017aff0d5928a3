"""Groups of comparisons that differ only in the number of labels."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from arml.lab.run import Line, Subject
from arml.report.data.comparison import Comparison
from arml.report.data.measure import ERROR, Measure
from arml.report.data.summary import Summary, summarise
from arml.report.titles import MAIN_ONLY, order, uses_labels


class Topic(NamedTuple):
    """Comparisons at several numbers of labels, as one."""

    subject: Subject
    """One of its subjects, for titles."""
    labels: list[float]
    shortfalls: dict[Line, dict[int, dict[float, float]]]
    """What is compared by line, seed and number of labels; less is better."""
    reference: dict[Line, Line]
    limit: float
    """The largest possible result."""
    measure: Measure
    """What is compared: that of all comparisons, or the error."""

    def main_only_line(self) -> Line | None:
        """The line that sees the main task alone, if it was run."""
        return next((line for line in self.shortfalls if line.learner in MAIN_ONLY), None)

    def has_reference(self) -> bool:
        """Whether there is a line to compare another one with."""
        return any(self.reference[line] in self.shortfalls for line in self.shortfalls if line != self.reference[line])

    def means(self, line: Line) -> dict[float, Summary]:
        """The mean shortfall over seeds, with its interval, at each number of labels."""
        found: dict[float, list[float]] = defaultdict(list)
        for by_labels in self.shortfalls[line].values():
            for labels, shortfall in by_labels.items():
                found[labels].append(shortfall)
        return {labels: summarise(found[labels]) for labels in sorted(found)}


def topics(compared: Sequence[Comparison], measure: Measure | None = None) -> list[Topic]:
    """The topics with several numbers of labels.

    ``measure`` is what is compared; ``None``: what all comparisons of the topic are decided by, or else the error.
    """
    grouped: dict[tuple[str, str, str], list[Comparison]] = defaultdict(list)
    for comparison in compared:
        grouped[comparison.subject[:3]].append(comparison)
    found = [_topic(members, measure or _common_measure(members)) for members in grouped.values()]
    return [topic for topic in found if len(topic.labels) > 1]


def _common_measure(members: Sequence[Comparison]) -> Measure:
    measures = {comparison.measure() for comparison in members}
    return measures.pop() if len(measures) == 1 else ERROR


def _topic(members: Sequence[Comparison], measure: Measure) -> Topic:
    found: dict[Line, dict[int, dict[float, float]]] = defaultdict(lambda: defaultdict(dict))
    for comparison in members:
        for line in comparison.finished:
            for seed, value in comparison.results(line, measure.name).items():
                found[line][seed][comparison.subject.labels] = measure.shortfall(value)
    labels = sorted({n for by_seed in found.values() for by_labels in by_seed.values() for n in by_labels})
    reference = {line: one for comparison in members for line, one in comparison.reference.items()}
    in_order = {line: found[line] for line in sorted(found, key=order)}
    return Topic(members[0].subject, labels, in_order, reference, max(one.limit() for one in members), measure)


def is_on_axis(labels: float) -> bool:
    """Whether a number of labels has a place on a logarithmic axis: no labels and all labels have none."""
    return 0 < labels < math.inf


def middle_level(topic: Topic) -> float:
    """The middle of the results that are reached with equal weights and on the main task alone.

    Equal weights reach everything between the best and the worst mean shortfall of the lines that have them and use
    labels, or of all lines. If that overlaps with what the main task alone reaches, the middle of the overlap is taken:
    there both say how many labels they need.
    """
    alone = topic.main_only_line()
    equal = [line for line in topic.shortfalls if line == topic.reference[line] and uses_labels(line) and line != alone]
    best, worst = _reached(topic, equal or list(topic.shortfalls))
    if alone is not None:
        best_alone, worst_alone = _reached(topic, [alone])
        if max(best, best_alone) < min(worst, worst_alone):
            best, worst = max(best, best_alone), min(worst, worst_alone)
    return (best + worst) / 2


def _reached(topic: Topic, lines: Sequence[Line]) -> tuple[float, float]:
    """The best and the worst mean shortfall."""
    found = [(n, summary.mean) for line in lines for n, summary in topic.means(line).items()]
    # Points without a place on the axis of labels count only if no others were run.
    means = [mean for n, mean in found if is_on_axis(n)] or [mean for _, mean in found]
    return min(means), max(means)
