"""A table of the labels that each line needs to reach a result."""

import math
from collections.abc import Mapping, Sequence

from arml.lab.run import Line
from arml.report.data.labels_needed import LabelsNeeded, geometric_mean, labels_needed_by_seed, saving
from arml.report.data.topics import Topic, is_on_axis
from arml.report.tables.phrases import level_title
from arml.report.tables.sheet import Cell, Sheet, text
from arml.report.titles import line_title, topic_title, uses_labels

NEEDED_FORMULA = (
    "labels needed: the point where the line between neighbouring points, on a logarithmic axis of labels, first "
    "reaches the result, for each seed; then the geometric mean over seeds and exp of the 95 % interval by Student's t "
    "of the logarithm"
)
SAVING_FORMULA = (
    "share: labels needed / labels that the other line needs, for each seed that reaches the result with both; then "
    "the geometric mean over seeds and exp of the 95 % interval by Student's t of the logarithm of the ratio"
)


def labels_sheet(topic: Topic, level: float) -> Sheet:
    """Labels needed and share of labels, line by line."""
    alone = topic.main_only_line()
    shares = ("share of what uniform needs", *(["share of what main only needs"] if alone is not None else []))
    return Sheet(
        f"Labels needed for {level_title(topic.measure, level)}: {topic_title(topic.subject)}",
        ("", "labels needed", *shares, "seeds that reach it"),
        tuple(_row(topic, line, level, alone) for line in topic.shortfalls),
        (NEEDED_FORMULA, SAVING_FORMULA, _labels_note(topic.labels)),
    )


def _labels_note(labels: Sequence[float]) -> str:
    names = {n: "all" if math.isinf(n) else f"{n:g}" for n in labels}
    left_out = [name for n, name in names.items() if not is_on_axis(n)]
    no_place = f"; {' and '.join(left_out)} left out: no place on a logarithmic axis" if left_out else ""
    return f"labels tried: {', '.join(names.values())}{no_place}"


def _row(topic: Topic, line: Line, level: float, alone: Line | None) -> tuple[Cell, ...]:
    references = [topic.reference[line], *([alone] if alone is not None else [])]
    if not uses_labels(line):
        return text(line_title(line)), text("uses no label of the target"), *[text("")] * (1 + len(references))
    found = labels_needed_by_seed(topic, line, level)
    known = geometric_mean([one.labels or 1 for one in found.values() if one.is_known()])
    reached = sum(one.labels is not None for one in found.values())
    return (
        text(line_title(line)),
        Cell(known.format(), known.mean) if known else text(_bound(found)),
        *(_share(topic, line, level, reference) for reference in references),
        Cell(f"{reached} of {len(found)}", reached),
    )


def _share(topic: Topic, line: Line, level: float, reference: Line) -> Cell:
    share = None if line == reference else saving(topic, line, level, reference)
    if share is None:
        return text("")
    return Cell(share.format(100, " %") + ("*" if share.excludes_one() else ""), share.mean)


def _bound(found: Mapping[int, LabelsNeeded]) -> str:
    if not found:
        return "one number of labels only"
    least = [one.labels for one in found.values() if one.at_most and one.labels is not None]
    return f"at most {least[0]:g}" if least else "not reached"
