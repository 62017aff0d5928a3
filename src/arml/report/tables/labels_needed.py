"""How many labels are needed to reach an error, and what a method saves."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from arml.lab.run import Line
from arml.report.data.summary import summarise
from arml.report.data.topics import Topic, on_axis
from arml.report.tables.sheet import Cell, Sheet, text
from arml.report.titles import ARMLS, line_title, topic_title, uses_labels

NEEDED_FORMULA = (
    "labels needed: where the line between neighbouring points, on a logarithmic axis of labels, first falls to the "
    "error; of each seed, then the geometric mean and exp of the 95 % interval by Student's t of its logarithm"
)
SAVING_FORMULA = (
    "share: labels needed / labels needed with equal weights, of each seed that reaches the error with both; geometric "
    "mean and exp of the 95 % interval by Student's t of the logarithm of the ratio"
)


class Needed(NamedTuple):
    """How many labels one seed needs; ``None``: it does not get there with as many as were tried."""

    labels: float | None
    at_most: bool = False
    """The fewest labels that were tried are already enough."""

    def is_known(self) -> bool:
        """Whether it is a number, not only a bound."""
        return self.labels is not None and not self.at_most


class GeometricMean(NamedTuple):
    """Of positive numbers over seeds, with its 95 % interval."""

    mean: float
    low: float
    high: float
    n: int

    def shown(self, factor: float = 1.0, unit: str = "") -> str:
        """Rounded to three digits.

        >>> GeometricMean(0.5, 0.25, 1.0, 3).shown(100, " %")
        '50 % (25 to 100)'
        """
        numbers = [f"{float(f'{factor * value:.3g}'):g}" for value in (self.mean, self.low, self.high)]
        return f"{numbers[0]}{unit}" + (f" ({numbers[1]} to {numbers[2]})" if self.n > 1 else "")


def needed(errors: Mapping[float, float], level: float) -> Needed:
    """Labels at which the error first falls to ``level``, on straight lines over log(labels).

    No labels at all and all there are have no place on that axis: they are left out.

    >>> needed({10: 40.0, 1000: 20.0}, 30.0)
    Needed(labels=100.0..., at_most=False)
    """
    points = [(math.log(n), errors[n]) for n in sorted(errors) if on_axis(n)]
    if points and points[0][1] <= level:
        return Needed(math.exp(points[0][0]), at_most=True)
    for (x, error), (next_x, next_error) in pairwise(points):
        if next_error <= level:
            return Needed(math.exp(x + (next_x - x) * (error - level) / (error - next_error)))
    return Needed(None)


def needed_by_seed(topic: Topic, line: Line, level: float) -> dict[int, Needed]:
    """Labels that each seed of the line needs, if it was run at two numbers of labels or more."""
    several = {seed: errors for seed, errors in topic.errors[line].items() if sum(map(on_axis, errors)) > 1}
    return {seed: needed(errors, level) for seed, errors in several.items()}


def needed_by_both(topic: Topic, line: Line, level: float) -> list[tuple[Needed, Needed]]:
    """Labels that the line and equal weights need, on seeds that have both; no seed if equal weights use no label."""
    reference = topic.reference[line]
    if reference not in topic.errors or not uses_labels(reference):
        return []
    ours, theirs = needed_by_seed(topic, line, level), needed_by_seed(topic, reference, level)
    return [(ours[seed], theirs[seed]) for seed in ours if seed in theirs]


def saving(topic: Topic, line: Line, level: float) -> GeometricMean | None:
    """Labels the line needs as a share of what equal weights need, on seeds for which both are known."""
    both = needed_by_both(topic, line, level)
    known = [(ours, theirs) for ours, theirs in both if ours.is_known() and theirs.is_known()]
    return geometric_mean([(ours.labels or 1) / (theirs.labels or 1) for ours, theirs in known])


def geometric_mean(values: Sequence[float]) -> GeometricMean | None:
    """exp(mean of log ± t(0.975, n - 1) s / sqrt(n)); ``None`` of nothing."""
    if not values:
        return None
    logs = summarise([math.log(value) for value in values])
    high = math.exp(logs.high) if logs.high < 700 else math.inf
    return GeometricMean(math.exp(logs.mean), math.exp(logs.low), high, logs.n)


def labels_sheet(topic: Topic, level: float) -> Sheet:
    """Labels needed and share of labels, line by line."""
    return Sheet(
        f"Labels needed for an error of {level:.2f} %: {topic_title(topic.subject)}",
        ("", "labels needed", "share of what uniform needs", "seeds that reach it"),
        tuple(_row(topic, line, level) for line in topic.errors),
        (NEEDED_FORMULA, SAVING_FORMULA, _tried(topic.labels)),
    )


def _tried(labels: Sequence[float]) -> str:
    named = {n: "all" if math.isinf(n) else f"{n:g}" for n in labels}
    left_out = [name for n, name in named.items() if not on_axis(n)]
    no_place = f"; {' and '.join(left_out)} left out: no place on a logarithmic axis" if left_out else ""
    return f"labels tried: {', '.join(named.values())}{no_place}"


def _row(topic: Topic, line: Line, level: float) -> tuple[Cell, ...]:
    if not uses_labels(line):
        return text(line_title(line)), text("uses no label of the target"), text(""), text("")
    found = needed_by_seed(topic, line, level)
    known = geometric_mean([one.labels or 1 for one in found.values() if one.is_known()])
    share = None if line == topic.reference[line] else saving(topic, line, level)
    reached = sum(one.labels is not None for one in found.values())
    return (
        text(line_title(line)),
        Cell(known.shown(), known.mean) if known else text(_bound(found)),
        Cell(share.shown(100, " %") + ("*" if _is_clear(share) else ""), share.mean) if share else text(""),
        Cell(f"{reached} of {len(found)}", reached),
    )


def _bound(found: Mapping[int, Needed]) -> str:
    if not found:
        return "one number of labels only"
    least = [one.labels for one in found.values() if one.at_most and one.labels is not None]
    return f"at most {least[0]:g}" if least else "not reached"


def _is_clear(share: GeometricMean) -> bool:
    return share.n > 1 and not share.low <= 1 <= share.high


def saving_sentences(topic: Topic, level: float) -> list[str]:
    """What ARML and its kin save, in words that the interval allows."""
    lines = [line for line in topic.errors if line.method in ARMLS and not line.variant]
    return [_sentence(topic, line, level) for line in lines]


def _sentence(topic: Topic, line: Line, level: float) -> str:
    name, share = line_title(line), saving(topic, line, level)
    if share is None:
        return f"{name}: {_no_share(topic, line, level)}, so no share can be given."
    words = (
        f"{name} needs {share.shown(100, ' %')} of the labels that uniform weights need for an error of {level:.2f} %"
    )
    if share.n < 2:
        return f"{words}, on one seed: that establishes nothing."
    doubt = "" if _is_clear(share) else " The interval includes 100 %: no saving is established."
    return f"{words}, n = {share.n} seeds.{doubt}"


_ENOUGH_FOR = {(True, True): "both", (True, False): "it", (False, True): "uniform weights"}
"""For whom the fewest labels are enough: the line, equal weights."""


def _no_share(topic: Topic, line: Line, level: float) -> str:
    """Why it is not known what a line saves."""
    if not uses_labels(topic.reference[line]):
        return "with uniform weights it uses no label of the target"
    both = needed_by_both(topic, line, level)
    if not both:
        return "no seed was run with it and with uniform weights at two numbers of labels"
    reached = [pair for pair in both if all(one.labels is not None for one in pair)]
    if not reached:
        return f"no seed reaches an error of {level:.2f} % both with it and with uniform weights"
    whom = dict.fromkeys(_ENOUGH_FOR[ours.at_most, theirs.at_most] for ours, theirs in reached)
    return (
        f"where it and uniform weights reach an error of {level:.2f} % ({len(reached)} of {len(both)} seeds), the "
        f"fewest labels tried are already enough for {' or '.join(whom)}"
    )
