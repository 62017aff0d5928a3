"""Groups of comparisons that differ only in the number of labels."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from arml.lab.run import Line, Subject
from arml.report.data.comparison import Comparison
from arml.report.data.summary import Summary, summarise
from arml.report.titles import MAIN_ONLY, order, uses_labels


class Topic(NamedTuple):
    """Comparisons at several numbers of labels, as one."""

    subject: Subject
    """One of its subjects, for titles."""
    labels: list[float]
    errors: dict[Line, dict[int, dict[float, float]]]
    """The error by line, seed and number of labels."""
    reference: dict[Line, Line]
    error_limit: float
    """The largest possible error."""

    def main_only_line(self) -> Line | None:
        """The line that sees the main task alone, if it was run."""
        return next((line for line in self.errors if line.learner in MAIN_ONLY), None)

    def has_reference(self) -> bool:
        """Whether there is a line to compare another one with."""
        return any(self.reference[line] in self.errors for line in self.errors if line != self.reference[line])

    def mean_errors(self, line: Line) -> dict[float, Summary]:
        """The mean error over seeds, with its interval, at each number of labels."""
        found: dict[float, list[float]] = defaultdict(list)
        for by_labels in self.errors[line].values():
            for labels, error in by_labels.items():
                found[labels].append(error)
        return {labels: summarise(found[labels]) for labels in sorted(found)}


def topics(compared: Sequence[Comparison]) -> list[Topic]:
    """The topics with several numbers of labels."""
    grouped: dict[tuple[str, str, str], list[Comparison]] = defaultdict(list)
    for comparison in compared:
        grouped[comparison.subject[:3]].append(comparison)
    found = [_topic(members) for members in grouped.values()]
    return [topic for topic in found if len(topic.labels) > 1]


def _topic(members: Sequence[Comparison]) -> Topic:
    errors: dict[Line, dict[int, dict[float, float]]] = defaultdict(lambda: defaultdict(dict))
    for comparison in members:
        for line in comparison.finished:
            for seed, error in comparison.errors(line).items():
                errors[line][seed][comparison.subject.labels] = error
    labels = sorted({n for by_seed in errors.values() for by_labels in by_seed.values() for n in by_labels})
    reference = {line: one for comparison in members for line, one in comparison.reference.items()}
    in_order = {line: errors[line] for line in sorted(errors, key=order)}
    return Topic(members[0].subject, labels, in_order, reference, max(one.error_limit() for one in members))


def is_on_axis(labels: float) -> bool:
    """Whether a number of labels has a place on a logarithmic axis: no labels and all labels have none."""
    return 0 < labels < math.inf


def middle_level(topic: Topic) -> float:
    """Half-way between the best and worst mean error of lines with equal weights that use labels, or of all lines."""
    equal = [line for line in topic.errors if line == topic.reference[line] and uses_labels(line)]
    found = [(n, summary.mean) for line in equal or topic.errors for n, summary in topic.mean_errors(line).items()]
    # Points without a place on the axis of labels count only if no others were run.
    means = [mean for n, mean in found if is_on_axis(n)] or [mean for _, mean in found]
    return (min(means) + max(means)) / 2
