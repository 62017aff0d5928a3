"""Small parts of sentences about results, differences and tasks."""

from collections.abc import Sequence

from arml.report.data.decision import Decision
from arml.report.data.measure import Measure
from arml.report.data.summary import Summary
from arml.report.titles import YARDSTICKS

MOST_NAMES = 6
"""Tasks that a line names; further ones are counted."""


def percent(result: Summary | None) -> str:
    """The mean; empty if there is none."""
    return "" if result is None else f"{result.mean:.1f} %"


def level_title(measure: Measure, level: float) -> str:
    """A shortfall as a result that labels are needed for.

    >>> level_title(Measure(), 12.5), level_title(Measure("average_precision"), 12.5)
    ('an error of 12.50 %', 'an average precision of 87.50 %')
    """
    return f"an {measure.title()} of {measure.value(level):.2f} %"


def points(decision: Decision) -> str:
    """The size of a difference.

    >>> from arml.report.data.decision import Outcome
    >>> points(Decision(Outcome.LESS, Summary(-1.02, 0.3, 5))), points(Decision(Outcome.LESS, Summary(-4.1, 0.3, 5)))
    ('1.0 point', '4.1 points')
    """
    size = abs(decision.difference.mean) if decision.difference else 0.0
    return f"{size:.1f} point{'' if f'{size:.1f}' == '1.0' else 's'}"


def better_seeds(decision: Decision | None) -> str:
    """On how many seeds ours is better."""
    found = decision.difference if decision else None
    return f"{decision.less} of {found.n} seeds" if decision and found else "no seed"


def model_name(name: str) -> str:
    """A simple model in a sentence."""
    return YARDSTICKS.get(name, name)


def join_names(names: Sequence[str]) -> str:
    """Names with commas between them, and how many are left out of a long list.

    >>> join_names(["age", "height, cm"])
    "age, 'height, cm'"
    """
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(repr(name) if "," in name else name for name in names[:MOST_NAMES]) + more
