"""The help of a command and the list of commands, as plain text."""

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import MISSING
from pathlib import Path
from textwrap import fill, indent
from typing import Any

from arml.cli.option_list import Option

GROUPS = {
    "What to learn from": "preset dataset table folders main aux features as_numbers as_classes target leave_out "
    "labels shots image_size tier worlds list quick",
    "What to compare": "seeds methods learners mains targets label_counts shot_counts focus beside without grid "
    "main_only forkmerge leave_one_out method_file paper",
    "How to learn": "learner method seed network steps optimizer lr weight_lr every select weights dropout",
    "What to search": "trials lr_range weight_lr_range aux_scale_range",
    "Where and how to run": "out data_dir settings resume engine workers threads device precision compile address "
    "cpus_per_run gpus_per_run",
    "Fine points": "batch_labelled batch_unlabelled batch_main batch_aux batch_source batch_target supervised_batch "
    "aux_scale lr_drop_at lr_drop momentum weight_decay growing window temperature bn_momentum labelled_in_pool "
    "as_released evaluate_every record_every checkpoint_every",
}
"""Which option stands under which heading, in this order. Options that no heading names come before the fine points."""
FEW = 12
"""Up to so many options need no headings."""
WORDS = {int: "N", float: "NUMBER", Path: "PATH", str: "NAME"}
FILES = {"table": "FILE", "weights": "FILE", "folders": "FOLDER"}
SHORT_LIST = 40
"""Choices of so many letters stand behind the option; longer lists follow its text."""
COLUMN = 26
"""Where the texts begin."""


def option_help(options: Sequence[Option]) -> str:
    """Every option with its text and default, under headings if there are many."""
    places = [option for option in options if option.positional]
    flags = [option for option in options if not option.positional]
    parts = [_section("Arguments", places)] if places else []
    if len(flags) <= FEW:
        return "\n\n".join([*parts, _section("Options", flags)])
    for title, names in _headings(flags).items():
        chosen = [option for name in names for option in flags if option.field == name]
        parts += [_section(title, chosen)] if chosen else []
    return "\n\n".join(parts)


def _headings(options: Sequence[Option]) -> dict[str, list[str]]:
    groups = {title: names.split() for title, names in GROUPS.items()}
    named = {name for names in groups.values() for name in names}
    *first, last = groups
    others = [option.field for option in options if option.field not in named]
    return {**{title: groups[title] for title in first}, "More": others, last: groups[last]}


def _section(title: str, options: Iterable[Option]) -> str:
    return "\n".join([f"{title}:", *(_describe(option) for option in options)])


def _describe(option: Option) -> str:
    head, text = f"  {_invocation(option)}", option.text
    listed = [name for name in option.choices if not name.startswith("grid-")]
    if listed and not _is_short(option):
        text += f" One of: {', '.join(listed)}."
    if (shown := _show_default(option)) and "Default:" not in text:
        text += f" (default: {shown})"
    margin = " " * COLUMN
    block = fill(text, _width(), initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False)
    return f"{head:<{COLUMN}}{block.lstrip()}" if len(head) < COLUMN - 1 else f"{head}\n{block}"


def _invocation(option: Option) -> str:
    if option.kind is bool:
        return f"{option.flag}, --no-{option.flag[2:]}" if option.default else option.flag
    value = (
        f"{{{','.join(option.choices)}}}"
        if _is_short(option)
        else FILES.get(option.field, WORDS.get(option.kind, "NAME"))
    )
    if option.positional:
        value = option.field.upper()
    value += " ..." if option.many else ""
    return value if option.positional else f"{option.flag} {value}"


def _is_short(option: Option) -> bool:
    return 0 < len(",".join(option.choices)) <= SHORT_LIST


def _show_default(option: Option) -> str:
    value: Any = option.default
    if value is MISSING or value is None or value == "" or value == () or option.kind is bool:
        return ""
    return " ".join(_show(part) for part in (value if isinstance(value, tuple) else (value,)))


def _show(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def paragraphs(text: str) -> str:
    """``text`` in lines that fit the terminal; lines that begin with spaces stay as they are."""
    return "\n".join(line if line.startswith(" ") else fill(line, _width()) for line in text.splitlines())


def examples_text(examples: Sequence[str]) -> str:
    """Commands to copy."""
    return "Examples:\n" + indent("\n".join(examples), "  ")


def _width() -> int:
    return min(shutil.get_terminal_size((80, 24)).columns, 100)
