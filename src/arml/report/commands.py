"""The exact commands that repeat the runs."""

import shlex
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import NamedTuple

from arml.lab.own_loop import OwnLoop
from arml.lab.run import Run
from arml.lab.run_kinds import Suite
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
        if not isinstance(run, Suite | OwnLoop):  # no command repeats somebody's own loop
            seeds[replace(run, seed=0)].append(run.seed)
    return _repeat_suite([run for run in runs if isinstance(run, Suite)]) + [
        Repeat(f"{subject_title(run.subject())}: {line_title(run.line())}", _loop_command(run, sorted(found), defaults))
        for run, found in seeds.items()
    ]


def _repeat_suite(runs: Sequence[Suite]) -> list[Repeat]:
    """One command per tier, or per table or folder of the user's."""
    tiers: dict[tuple[str, ...], list[Suite]] = defaultdict(list)
    for run in runs:
        tiers[run.tier, run.table, run.folders, run.main, *run.aux].append(run)
    return [Repeat(f"Suite of known truths: {key[0]}", _suite_command(found)) for key, found in tiers.items()]


def _suite_command(runs: Sequence[Suite]) -> str:
    one = runs[0]
    own = {"table": one.table, "folders": one.folders, "main": one.main if one.table or one.folders else ""}
    words = ["--tier", one.tier] if one.tier != "own" else [w for k, v in own.items() if v for w in (f"--{k}", v)]
    words += ["--aux", *one.aux] if one.aux else []
    methods = dict.fromkeys(run.method for run in runs if not run.method_file)
    files = dict.fromkeys(run.method_file for run in runs if run.method_file)
    words += ["--worlds", *dict.fromkeys(run.world for run in runs), "--methods", *methods]
    words += ["--method-file", *files] if files else []
    return shlex.join(["arml", "suite", *words, "--seeds", str(len({run.seed for run in runs}))])


def _loop_command(run: Run, seeds: Sequence[int], defaults: Defaults) -> str:
    if len(seeds) == 1:
        return train_command(replace(run, seed=seeds[0]), defaults)
    command = train_command(run, defaults).replace(" --seed 0", "")
    return f'for seed in {" ".join(map(str, seeds))}; do {command} --seed "$seed"; done'


def train_command(run: Run, defaults: Defaults) -> str:
    """``arml train`` with every option that differs from the defaults, quoted for a shell; it fills in fingerprints."""
    words, default = defaults(run)
    start = ["arml", "train", run.setting, *words]
    known = asdict(default)
    changed = {name: value for name, value in asdict(run).items() if value != known[name] and name[-7:] != "_digest"}
    return shlex.join(start + [word for name, value in changed.items() for word in _option(name, value)])


def _option(name: str, value: object) -> list[str]:
    option = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{option}" if value else f"--no-{option}"]
    if isinstance(value, tuple):
        names = [f'"{part}"' if "," in str(part) else str(part) for part in value]
        dashes = any(name.startswith("-") for name in names)
        return [f"--{option}={name}" for name in names] if dashes else [f"--{option}", *names]
    # The parser would take a value that begins with a dash for an option.
    return [f"--{option}={value}"] if str(value).startswith("-") or value == "" else [f"--{option}", str(value)]
