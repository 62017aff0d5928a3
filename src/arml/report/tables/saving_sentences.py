"""What ARML saves in labels, in sentences that claim no more than the interval allows."""

from arml.lab.run import Line
from arml.report.data.labels_needed import paired_labels_needed, saving
from arml.report.data.topics import Topic
from arml.report.titles import ARMLS, line_title, uses_labels


def saving_sentences(topic: Topic, level: float) -> list[str]:
    """A sentence for each line with a variant of ARML."""
    lines = [line for line in topic.errors if line.method in ARMLS and not line.variant]
    return [_sentence(topic, line, level) for line in lines]


def _sentence(topic: Topic, line: Line, level: float) -> str:
    name, share = line_title(line), saving(topic, line, level)
    if share is None:
        return f"{name}: {_why_no_share(topic, line, level)}, so no share can be given."
    needs = (
        f"{name} needs {share.format(100, ' %')} of the labels that uniform weights need for an error of {level:.2f} %"
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
    both = paired_labels_needed(topic, line, level)
    if not both:
        return "no seed was run with it and with uniform weights at two numbers of labels"
    reached = [pair for pair in both if all(one.labels is not None for one in pair)]
    if not reached:
        return f"no seed reaches an error of {level:.2f} % both with it and with uniform weights"
    enough_for = dict.fromkeys(_ENOUGH_FOR[ours.at_most, theirs.at_most] for ours, theirs in reached)
    return (
        f"where it and uniform weights reach an error of {level:.2f} % ({len(reached)} of {len(both)} seeds), the "
        f"fewest labels tried are already enough for {' or '.join(enough_for)}"
    )
