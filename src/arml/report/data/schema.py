"""What a record may hold: types, sizes and ranges. Records come from other people and other versions."""

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from arml.lab.run import Run
from arml.lab.trace import Record, Recorded, divergence, result

LARGEST = 1e100
"""Numbers beyond this are refused: their squares, which averages need, would overflow."""
LONGEST = 10_000
"""Letters in a name."""
MOST_TASKS = 10_000
"""Tasks of a run, and names in a list."""


def check_record(recorded: Recorded) -> Recorded:
    """Returns ``recorded`` with plain numbers only; raises a ValueError that names the first line that is odd."""
    _check_run(recorded.run)
    _require(_is_texts(recorded.environment), "line 1: `environment` should hold names and texts")
    lines = [_check_line(line, number) for number, line in enumerate(recorded.records, start=2)]
    outcome = result(lines)
    if outcome is not None and not _is_result(outcome):
        raise ValueError(f"its result has numbers that are missing or no numbers: {_shorten(outcome)}")
    ended = divergence(lines)
    if ended is not None and not _is_divergence(ended["diverged"]):
        raise ValueError(f"`diverged` should hold tasks and a reason. Got {_shorten(ended['diverged'])}.")
    return recorded._replace(records=lines)


def _check_run(run: Run) -> None:
    for name, allowed in _types(type(run)).items():
        value = getattr(run, name)
        if not any(check(value) for check in allowed):
            raise ValueError(f"line 1: `{name}` of the run has an odd value: {_shorten(value)}")
    run.subject(), run.line(), run.reference(), run.protocol()  # runs of another version may lack what these need


def _check_line(line: Any, number: int) -> Record:
    if not isinstance(line, dict) or not _is_whole(line.get("step")) or line["step"] < 0:
        raise ValueError(f"line {number} is no record of a step: {_shorten(line)}")
    named = [key for key in ("weights", "agreement", "cosine", "losses", "yardsticks") if key in line]
    return line | {key: _finite_numbers(line[key], f"line {number}: `{key}`") for key in named}


def _finite_numbers(named: Any, where: str) -> dict[str, float]:
    """The numbers by name; null, NaN and infinity are left out. Records of version 0.1 hold NaN."""
    _require(isinstance(named, dict) and len(named) <= MOST_TASKS, f"{where} should hold a number for each task")
    found = {name: value for name, value in named.items() if value is not None and not _is_infinite(value)}
    for name, value in found.items():
        _require(_is_name(name) and _is_number(value), f"{where} has an odd number for {_shorten(name)}")
    return found


def _is_result(outcome: Record) -> bool:
    measured = [value for key, value in outcome.items() if key.startswith(("test_", "validation_"))]
    needed = [outcome.get("test_error"), outcome.get("validation_error", 0.0)]  # there may be no validation labels
    return isinstance(outcome.get("weights"), dict) and all(_is_number(value) for value in [*measured, *needed])


def _is_divergence(value: Any) -> bool:
    return isinstance(value, dict) and _is_names(value.get("tasks")) and _is_name(value.get("reason"))


@cache
def _types(kind: type[Run]) -> dict[str, tuple[Callable[[Any], bool], ...]]:
    """For every field of a run, the checks of which its value must pass one."""
    hints = get_type_hints(kind)
    return {name: tuple(_checks(hints[name])) for name in (field.name for field in fields(kind))}


def _checks(hint: Any) -> list[Callable[[Any], bool]]:
    if get_origin(hint) in (Union, UnionType):
        return [check for part in get_args(hint) for check in _checks(part)]
    if get_origin(hint) is Literal:
        return [_is_name]  # a name that this version does not know is welcome
    return [_CHECKS[hint]]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST


def _is_numbers(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) <= MOST_TASKS and all(map(_is_number, value))


def _is_names(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) <= MOST_TASKS and all(map(_is_name, value))


def _is_texts(value: Any) -> bool:
    return isinstance(value, Mapping) and len(value) <= 100 and all(map(_is_name, [*value, *value.values()]))


_CHECKS: dict[Any, Callable[[Any], bool]] = {
    int: _is_whole,
    float: lambda value: _is_number(value) and math.isfinite(value),
    bool: lambda value: isinstance(value, bool),
    str: _is_name,
    NoneType: lambda value: value is None,
    tuple[str, ...]: _is_names,
    tuple[float, ...]: _is_numbers,
}


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)


def _shorten(value: Any) -> str:
    """The beginning of ``value``, without looking at all of it."""
    if isinstance(value, dict):
        value = dict(list(value.items())[:5])
    if isinstance(value, list | tuple):
        value = list(value[:10])
    try:
        return repr(value[:200] if isinstance(value, str) else value)[:120]
    except (ValueError, RecursionError):  # a number with thousands of digits, or brackets as deep
        return f"something of type {type(value).__name__}"
