"""Figures over several comparisons: numbers of labels and main tasks."""

import math
from collections.abc import Callable, Sequence

from arml.lab.run import Line
from arml.report.charts.chart import NOT_NEGATIVE, Bounds, Chart, Heat, Lines, Panel, Series
from arml.report.charts.one_subject import band_note, describe_ends, slug, training_panel
from arml.report.data.comparison import Comparison
from arml.report.data.final_weights import Matrix, matrices
from arml.report.data.scarcity import group_by_scarcity
from arml.report.data.topics import Topic, middle_level, topics
from arml.report.titles import labels_title, line_title, topic_title


def charts_over_subjects(compared: Sequence[Comparison]) -> list[Chart]:
    """Charts over several subjects."""
    return [
        *(labels_chart(topic) for topic in topics(compared)),
        *(scarcity_chart(line, members) for line, members in group_by_scarcity(compared)),
        *(matrix_chart(matrix) for matrix in matrices(compared)),
    ]


def labels_chart(topic: Topic) -> Lines:
    """What is compared over labels; for target domains, accuracy over shots."""
    domains = topic.subject.setting == "dg"
    measure = topic.measure
    score: Callable[[float], float] = (lambda error: 100 - error) if domains else measure.value
    panel = Panel(
        topic_title(topic.subject) + (", runs with all labels left out" if math.inf in topic.labels else ""),
        tuple(_labels_series(topic, line, score) for line in topic.shortfalls),
        tuple(
            (f"seed {seed}", tuple(_seed_series(topic, line, seed, score) for line in topic.shortfalls))
            for seed in sorted({seed for by_seed in topic.shortfalls.values() for seed in by_seed})
        ),
    )
    title = measure.title()
    what = "Accuracy over shots per class" if domains else f"{title[:1].upper()}{title[1:]} over labels"
    level = None if domains else measure.value(middle_level(topic))
    bounds = Bounds(0, topic.limit)
    return Lines(
        slug("labels", topic_title(topic.subject)),
        f"{what}: {topic_title(topic.subject)}",
        f"{what}, one curve per learner and method. {describe_ends('At the right end', panel)} {band_note(bounds)}"
        f"{_left_out_note(topic)}",
        "labelled target images per class" if domains else "labels of the main task",
        "accuracy in %" if domains else f"test {title} in %",
        (panel,),
        log_x=not domains and min(topic.labels) > 0,
        level=level,
        level_title="" if level is None else f"{title} {level:.2f} %",
        bounds=bounds,
    )


def _left_out_note(topic: Topic) -> str:
    """Where to find runs with all labels: they have no place on an axis of numbers."""
    if math.inf not in topic.labels:
        return ""
    tested = (
        " They are tested only on held-out images of the target, not on its training images."
        if topic.subject.setting == "dg"
        else ""
    )
    return f" Runs with all labels have no place on this axis; they are in the tables.{tested}"


def _labels_series(topic: Topic, line: Line, score: Callable[[float], float]) -> Series:
    found = {n: summary for n, summary in topic.means(line).items() if n < math.inf}
    several = all(summary.n > 1 for summary in found.values())
    ends = [sorted((score(summary.low), score(summary.high))) for summary in found.values()] if several else None
    return Series(
        line_title(line),
        list(found),
        [score(summary.mean) for summary in found.values()],
        [low for low, _ in ends] if ends else None,
        [high for _, high in ends] if ends else None,
    )


def _seed_series(topic: Topic, line: Line, seed: int, score: Callable[[float], float]) -> Series:
    found = {n: value for n, value in sorted(topic.shortfalls[line].get(seed, {}).items()) if n < math.inf}
    return Series(line_title(line), list(found), [score(value) for value in found.values()])


def scarcity_chart(line: Line, members: Sequence[Comparison]) -> Lines:
    """Weights over training, one panel per number of labels."""
    title = f"{topic_title(members[0].subject)}, {line_title(line)}"
    panels = tuple(training_panel(one, line, "weights")._replace(title=labels_title(one.subject)) for one in members)
    ends = " ".join(describe_ends(f"At the last recorded step with {panel.title}", panel) for panel in panels)
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
    """Mean final weights: rows are main tasks, columns auxiliary tasks."""
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
