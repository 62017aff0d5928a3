"""What ARML saves in labels, in sentences that claim no more than the interval allows."""

from arml.lab.run import Line
from arml.report.data.labels_needed import GeometricMean, paired_labels_needed, saving
from arml.report.data.topics import Topic
from arml.report.tables.phrases import level_title
from arml.report.titles import ARMLS, line_title, uses_labels


def saving_sentences(topic: Topic, level: float) -> list[str]:
    """A sentence for each line with a variant of ARML against uniform weights, and one against the main task alone."""
    lines = [line for line in topic.shortfalls if line.method in ARMLS and not line.variant]
    against_uniform = [_sentence(topic, line, level) for line in lines]
    alone = topic.main_only_line()
    if alone is None:
        return against_uniform
    shares = {line: saving(topic, line, level, alone) for line in lines}
    others_need = "the main task alone needs"
    return against_uniform + [
        _compare(topic, line, share, level, others_need) for line, share in shares.items() if share is not None
    ]


def _sentence(topic: Topic, line: Line, level: float) -> str:
    share = saving(topic, line, level, topic.reference[line])
    if share is None:
        return f"{line_title(line)}: {_why_no_share(topic, line, level)}, so no share can be given."
    return _compare(topic, line, share, level, "uniform weights need")


def _compare(topic: Topic, line: Line, share: GeometricMean, level: float, others_need: str) -> str:
    needs = (
        f"{line_title(line)} needs {share.format(100, ' %')} of the labels that {others_need} for "
        f"{level_title(topic.measure, level)}"
    )
    if share.n < 2:
        return f"{needs}, on one seed: that establishes nothing."
    doubt = "" if share.excludes_one() else " The interval includes 100 %: no saving is established."
    return f"{needs}, n = {share.n} seeds.{doubt}"


_ENOUGH_FOR = {(True, True): "both", (True, False): "it", (False, True): "uniform weights"}
"""For which of (line, equal weights) the fewest labels are enough."""


def _why_no_share(topic: Topic, line: Line, level: float) -> str:
    if not uses_labels(topic.reference[line]):
        return "with uniform weights it uses no label of the target"
    both = paired_labels_needed(topic, line, level, topic.reference[line])
    if not both:
        return "no seed was run with it and with uniform weights at two numbers of labels"
    reached = [pair for pair in both if all(one.labels is not None for one in pair)]
    if not reached:
        return f"no seed reaches {level_title(topic.measure, level)} both with it and with uniform weights"
    enough_for = dict.fromkeys(_ENOUGH_FOR[ours.at_most, theirs.at_most] for ours, theirs in reached)
    return (
        f"where it and uniform weights reach {level_title(topic.measure, level)} ({len(reached)} of {len(both)} "
        f"seeds), the fewest labels tried are already enough for {' or '.join(enough_for)}"
    )
