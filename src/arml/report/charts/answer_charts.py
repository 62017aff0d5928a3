"""The two small figures beside an answer: results, and weights over training, in colours that mean something."""

from arml.lab.run import Line
from arml.report.charts.chart import Bounds, Chart, Dot, Dots, Lines
from arml.report.charts.one_subject import band_note, slug, training_panel, weight_bounds
from arml.report.data.answer import Advice, Answer
from arml.report.data.summary import summarise
from arml.report.data.verdict import Finding
from arml.report.titles import ARMLS, experiment_title, short_title

TONE = {Finding.HELPS: "good", Finding.DROP: "bad", Finding.SAME: "plain", Finding.OPEN: "open"}
MOST_DOTS = 7


def answer_charts(answer: Answer) -> list[Chart]:
    """Results of the lines that matter, and the weights of the judged line, if they were recorded."""
    found = [_result_chart(answer), _weights_chart(answer)]
    return [chart for chart in found if chart is not None]


def _result_chart(answer: Answer) -> Dots | None:
    comparison, measure = answer.comparison, answer.measure()
    dots = []
    for line in _lines(answer)[:MOST_DOTS]:
        results = comparison.results(line, measure.name)
        chosen = line == answer.line and answer.advice in (Advice.LINE, Advice.ALONE, Advice.UNIFORM)
        dots.append(Dot(_name(line), summarise([*results.values()]), results, tone="good" if chosen else "plain"))
    if not dots:
        return None
    title = experiment_title(comparison.subject, len(answer.tasks))
    means = "; ".join(f"{dot.name} {dot.summary}" for dot in dots)
    return Dots(
        slug("answer", measure.title(), title),
        f"Test {measure.title()} in %",
        f"Mean test {measure.title()} in % with its 95 % interval over seeds: {means}.",
        "",
        tuple(dots),
        Bounds(0, comparison.limit()),
        caption="mean, 95 % interval, seeds",
    )


def _lines(answer: Answer) -> list[Line]:
    """The main task alone, equal weights, the judged methods of the same learner, the answer, and the oracle."""
    comparison, uniform = answer.comparison, answer.uniform
    alone, judged = comparison.main_only_line(), answer.judged
    methods = [line for line in comparison.lines_with(ARMLS) if judged and line.learner == judged.learner]
    oracle = [line for line in comparison.finished if line.variant == "without misleading" and line.method == "uniform"]
    found = dict.fromkeys([alone, uniform, *methods, answer.line, *oracle])
    return [line for line in found if line is not None and comparison.shortfalls(line)]


def _name(line: Line) -> str:
    if line.variant:
        return f"Oracle: {line.variant}"
    name = short_title(line).removeprefix("the ")
    return name[:1].upper() + name[1:]


def _weights_chart(answer: Answer) -> Lines | None:
    if answer.judged is None:
        return None
    panel = training_panel(answer.comparison, answer.judged, "weights")
    if not panel.series:
        return None
    tones = {one.task: TONE[one.finding] for one in answer.tasks}
    series = tuple(one._replace(tone=tones.get(one.name, "")) for one in panel.series)
    bounds = weight_bounds([panel])
    name = short_title(answer.judged)
    ends = ", ".join(f"{one.name} {one.y[-1]:.3g}" for one in series)
    return Lines(
        slug("answer-weights", experiment_title(answer.comparison.subject, len(answer.tasks))),
        f"Weights over training with {name}",
        f"Weights over training with {name}. At the end: {ends}. {band_note(bounds)}",
        "step",
        "",
        (panel._replace(series=series, by_seed=()),),
        level=1.0,
        level_title="equal share",
        bounds=bounds,
        caption="mean and 95 % interval over seeds",
    )
