"""Comparisons that differ in the number of labels alone, put together."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from arml.lab.run import Line, Subject
from arml.report.data.comparison import Comparison
from arml.report.data.summary import Summary, summarise
from arml.report.titles import order, uses_labels


class Topic(NamedTuple):
    """What a curve over labels is about."""

    subject: Subject
    """One of its subjects, for names."""
    labels: list[float]
    errors: dict[Line, dict[int, dict[float, float]]]
    """Of every line, seed and number of labels."""
    reference: dict[Line, Line]
    most_error: float
    """The largest error there can be."""

    def over_labels(self, line: Line) -> dict[float, Summary]:
        """Error over seeds at each number of labels."""
        found: dict[float, list[float]] = defaultdict(list)
        for by_labels in self.errors[line].values():
            for labels, error in by_labels.items():
                found[labels].append(error)
        return {labels: summarise(found[labels]) for labels in sorted(found)}


def topics(compared: Sequence[Comparison]) -> list[Topic]:
    """Those among the comparisons that were made at several numbers of labels."""
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
    return Topic(members[0].subject, labels, in_order, reference, max(one.most_error() for one in members))


def on_axis(labels: float) -> bool:
    """Whether so many labels have a place on a logarithmic axis: none at all and all there are have not."""
    return 0 < labels < math.inf


def middle_level(topic: Topic) -> float:
    """Half-way between best and worst mean error of the lines with equal weights that use labels, or of all lines."""
    equal = [line for line in topic.errors if line == topic.reference[line] and uses_labels(line)]
    found = [(n, summary.mean) for line in equal or topic.errors for n, summary in topic.over_labels(line).items()]
    # What has no place on the axis of labels does not count; if nothing else was run, it has to do.
    means = [mean for n, mean in found if on_axis(n)] or [mean for _, mean in found]
    return (min(means) + max(means)) / 2
