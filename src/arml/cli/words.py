"""From the words that a user types to words that the parser takes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from arml.cli.option_list import Option

DASH = "\ue000"
"""Stands for a dash at the beginning of a value while the parser reads it: it would take the value for an option."""


def prepare(words: Sequence[str], options: Sequence[Option]) -> list[str]:
    """Joins repeated options, hides the dash of names that begin with one, and takes ``none`` for ``None``.

    ``--aux a --aux b`` becomes ``--aux a b``. A name may follow as ``--main=-x`` or ``--main -x``.
    """
    known = {option.flag: option for option in options if not option.positional}
    left, given, rest = list(words), dict[str, list[str]](), list[str]()
    while left:
        word = left.pop(0)
        flag, equals, value = word.partition("=")
        option = known.get(flag.replace("_", "-")) if word.startswith("--") else None
        if word == "--":
            return [*_emit(given), *rest, word, *left]
        if option is None or option.kind is bool:
            _check_known(flag, known)
            rest.append(word)
            continue
        values = [value] if equals else []
        while left and (option.many or not values) and _is_value(left[0], option):
            values.append(left.pop(0))
        taken = [_translate(one, option) for one in values]
        given[option.flag] = [*given.get(option.flag, ()), *taken] if option.many else taken
    return [*rest, *_emit(given)]


def _check_known(word: str, known: Mapping[str, Option]) -> None:
    """Refuses an option that the command does not have."""
    negated = [f"--no-{flag[2:]}" for flag, option in known.items() if option.kind is bool]
    flags = [*known, *negated]
    if word.startswith("--") and word.replace("_", "-") not in flags:
        raise ValueError(f"Unknown option {word}.{suggest(word, flags)} --help lists all options.")


def _emit(given: dict[str, list[str]]) -> Iterator[str]:
    for flag, values in given.items():
        yield from (flag, *values)


def _is_value(word: str, option: Option) -> bool:
    """Whether ``word`` can belong to ``option``. Options of this command line have two dashes, except ``-h``."""
    is_option = word.startswith("--") or word == "-h"
    return not is_option if option.takes_text else (not is_option and not word[1:2].isalpha()) or word[:1] != "-"


def _translate(value: str, option: Option) -> str:
    if option.takes_text:
        return DASH + value[1:] if value.startswith("-") else value
    if option.choices and value not in option.choices:
        listed = ", ".join(name for name in option.choices if not name.startswith("grid-"))
        raise ValueError(f"{option.flag} has no {value!r}.{suggest(value, option.choices)} Known: {listed}.")
    return "None" if option.optional and value == "none" else value


def restore(value: Any) -> Any:
    """``value`` with its dashes; dataclasses and tuples are searched."""
    if isinstance(value, str):
        return f"-{value[1:]}" if value.startswith(DASH) else value
    if isinstance(value, Path):
        return Path(restore(str(value)))
    if isinstance(value, tuple):
        return tuple(map(restore, value))
    if is_dataclass(value) and not isinstance(value, type):
        parts = {part.name: getattr(value, part.name) for part in fields(value)}
        changed = {name: new for name, part in parts.items() if (new := restore(part)) != part}
        return replace(value, **changed) if changed else value
    return value


def suggest(word: str, known: Sequence[str]) -> str:
    """A question that names the nearest of the known words; empty if none is near.

    >>> suggest("trian", ["train", "report"])
    ' Did you mean train?'
    >>> suggest("fly", ["train", "report"])
    ''
    """
    near = get_close_matches(word, known, n=1, cutoff=0.6)
    return f" Did you mean {near[0]}?" if near else ""
