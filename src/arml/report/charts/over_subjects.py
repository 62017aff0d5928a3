"""Figures over several comparisons: numbers of labels and main tasks."""

import math
from collections.abc import Callable, Sequence

from arml.lab.run import Line
from arml.report.charts.chart import NOT_NEGATIVE, Bounds, Chart, Heat, Lines, Panel, Series
from arml.report.charts.one_subject import band_note, panel_of, slug, spoken
from arml.report.data.comparison import Comparison
from arml.report.data.topics import Topic, middle_level, topics
from arml.report.tables.related import Matrix, matrices
from arml.report.tables.scarcity import by_scarcity
from arml.report.titles import labels_title, line_title, topic_title


def of_all(compared: Sequence[Comparison]) -> list[Chart]:
    """Figures over several subjects."""
    return [
        *(over_labels(topic) for topic in topics(compared)),
        *(scarcity(line, members) for line, members in by_scarcity(compared)),
        *(matrix_chart(matrix) for matrix in matrices(compared)),
    ]


def over_labels(topic: Topic) -> Lines:
    """Labels against error; for target domains shots against accuracy."""
    domains = topic.subject.setting == "dg"
    turned: Callable[[float], float] = (lambda error: 100 - error) if domains else (lambda error: error)
    panel = Panel(
        topic_title(topic.subject) + (", all labels are not shown" if math.inf in topic.labels else ""),
        tuple(_over_labels(topic, line, turned) for line in topic.errors),
        tuple(
            (f"seed {seed}", tuple(_of_seed(topic, line, seed, turned) for line in topic.errors))
            for seed in sorted({seed for by_seed in topic.errors.values() for seed in by_seed})
        ),
    )
    what = "Accuracy over shots a class" if domains else "Labels against error"
    level = None if domains else middle_level(topic)
    bounds = Bounds(0, topic.most_error)
    return Lines(
        slug("labels", topic_title(topic.subject)),
        f"{what}: {topic_title(topic.subject)}",
        f"{what}, one curve for each way of learning. {spoken('With the most shown', panel)} {band_note(bounds)}"
        f"{_left_out(topic)}",
        "labelled target images a class" if domains else "labels of the main task",
        "accuracy in %" if domains else "test error in %",
        (panel,),
        log_x=not domains and min(topic.labels) > 0,
        level=level,
        level_title="" if level is None else f"error {level:.2f} %",
        bounds=bounds,
    )


def _left_out(topic: Topic) -> str:
    """All labels there are have no place on an axis of numbers; readers should not look for them."""
    if math.inf not in topic.labels:
        return ""
    tested = (
        " Those runs are tested only on images of the target that were not learned from: not on its training images."
        if topic.subject.setting == "dg"
        else ""
    )
    return f" Runs with all labels have no place on this axis and are left out; tables have them.{tested}"


def _over_labels(topic: Topic, line: Line, turned: Callable[[float], float]) -> Series:
    found = {n: summary for n, summary in topic.over_labels(line).items() if n < math.inf}
    several = all(summary.n > 1 for summary in found.values())
    ends = [sorted((turned(summary.low), turned(summary.high))) for summary in found.values()] if several else None
    return Series(
        line_title(line),
        list(found),
        [turned(summary.mean) for summary in found.values()],
        [low for low, _ in ends] if ends else None,
        [high for _, high in ends] if ends else None,
    )


def _of_seed(topic: Topic, line: Line, seed: int, turned: Callable[[float], float]) -> Series:
    found = {n: error for n, error in sorted(topic.errors[line].get(seed, {}).items()) if n < math.inf}
    return Series(line_title(line), list(found), [turned(error) for error in found.values()])


def scarcity(line: Line, members: Sequence[Comparison]) -> Lines:
    """Weights over training with few, more and most labels."""
    title = f"{topic_title(members[0].subject)}, {line_title(line)}"
    panels = tuple(panel_of(one, line, "weights")._replace(title=labels_title(one.subject)) for one in members)
    ends = " ".join(spoken(f"At the last recorded step with {panel.title}", panel) for panel in panels)
    return Lines(
        slug("scarcity", title),
        f"Weights under scarcity: {title}",
        f"Weights over training at {len(panels)} numbers of labels. {ends} {band_note(NOT_NEGATIVE)}",
        "step",
        "weight",
        panels,
        level=1.0,
        level_title="equal share",
        bounds=NOT_NEGATIVE,
    )


def matrix_chart(matrix: Matrix) -> Heat:
    """Mean final weights: rows are main tasks, columns auxiliary ones."""
    title = f"{matrix.subject.dataset}, {labels_title(matrix.subject)}, {line_title(matrix.line)}"
    return Heat(
        slug("matrix", title),
        f"Final weights over main tasks: {title}",
        f"Mean final weight of {len(matrix.tasks)} auxiliary tasks for {len(matrix.mains)} main tasks; the same "
        "numbers are in a table.",
        "auxiliary task",
        "main task",
        matrix.tasks,
        matrix.mains,
        [[None if weight is None else weight.mean for weight in row] for row in matrix.weights],
    )
