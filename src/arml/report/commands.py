"""The exact commands that repeat the runs."""

import shlex
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import NamedTuple

from arml.lab.run import Run
from arml.report.titles import line_title, subject_title

Defaults = Callable[[Run], tuple[list[str], Run]]
"""The words that choose a preset and a data set, and the run that the command line makes from them."""


class Repeat(NamedTuple):
    """A command that repeats all seeds of a line."""

    title: str
    command: str


def repeats(runs: Sequence[Run], defaults: Defaults) -> list[Repeat]:
    """A command for each group of runs that differ only in the seed."""
    seeds: dict[Run, list[int]] = defaultdict(list)
    for run in runs:
        seeds[replace(run, seed=0)].append(run.seed)
    return [
        Repeat(f"{subject_title(run.subject())}: {line_title(run.line())}", _loop_command(run, sorted(found), defaults))
        for run, found in seeds.items()
    ]


def _loop_command(run: Run, seeds: Sequence[int], defaults: Defaults) -> str:
    if len(seeds) == 1:
        return train_command(replace(run, seed=seeds[0]), defaults)
    command = train_command(run, defaults).replace(" --seed 0", "")
    return f'for seed in {" ".join(map(str, seeds))}; do {command} --seed "$seed"; done'


def train_command(run: Run, defaults: Defaults) -> str:
    """``arml train`` with every option that differs from the defaults, quoted for a shell."""
    words, default = defaults(run)
    start = ["arml", "train", run.setting, *words]
    known = asdict(default)
    changed = {name: value for name, value in asdict(run).items() if value != known[name]}
    return shlex.join(start + [word for name, value in changed.items() for word in _option(name, value)])


def _option(name: str, value: object) -> list[str]:
    option = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{option}" if value else f"--no-{option}"]
    if isinstance(value, tuple):
        return [f"--{option}", *map(str, value)]
    # The parser would take a value that begins with a dash for an option.
    return [f"--{option}={value}"] if str(value).startswith("-") or value == "" else [f"--{option}", str(value)]
