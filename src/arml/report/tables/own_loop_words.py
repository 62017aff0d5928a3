"""The answer for a loop of the user's own, which no command of arml trains: what to record, instead of what to type."""

import json
from collections.abc import Sequence

COMPARE = 'record runs with the method "main only" and with "uniform", too'


def try_without(tasks: Sequence[str]) -> str:
    """What to record to know whether these tasks help.

    >>> try_without(["even", "coin"])
    'record runs with the setting "without": "even" or "coin"'
    """
    return f'record runs with the setting "without": {" or ".join(json.dumps(task) for task in tasks)}'
