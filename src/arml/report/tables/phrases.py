"""Small parts of sentences about errors, differences and tasks."""

from collections.abc import Sequence

from arml.report.data.decision import Decision
from arml.report.data.summary import Summary
from arml.report.titles import YARDSTICKS

MOST_NAMES = 6
"""Tasks that a line names; further ones are counted."""


def percent(error: Summary | None) -> str:
    """The mean error; empty if there is none."""
    return "" if error is None else f"{error.mean:.1f} %"


def points(decision: Decision) -> str:
    """The size of a difference.

    >>> from arml.report.data.decision import Outcome
    >>> points(Decision(Outcome.LESS, Summary(-1.02, 0.3, 5))), points(Decision(Outcome.LESS, Summary(-4.1, 0.3, 5)))
    ('1.0 point', '4.1 points')
    """
    size = abs(decision.difference.mean) if decision.difference else 0.0
    return f"{size:.1f} point{'' if f'{size:.1f}' == '1.0' else 's'}"


def lower_seeds(decision: Decision | None) -> str:
    """On how many seeds ours is lower."""
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
