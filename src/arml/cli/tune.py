"""``arml tune``: settings for every line of a comparison, with the same effort for each."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from arml.cli.compare import choose_engine, report_failures, run_on_engine
from arml.cli.options import Tune
from arml.cli.progress import count_bar, plain_warnings, say
from arml.cli.train import check_at_least_one
from arml.lab.build import Folders, complete
from arml.lab.build.settings import check_data
from arml.lab.run import Run
from arml.lab.runs_root import open_root
from arml.lab.sweep import Outcome
from arml.lab.tune import Ranges, choose_best, group_lines, import_optuna, search
from arml.lab.tuned import Tuned, TunedLine, write_tuned


def run_tune(command: Tune[Run, Any], console: Console) -> int:
    """Searches, shows what was chosen and writes it; returns 1 if a run failed."""
    check_at_least_one("--trials", command.trials)
    check_at_least_one("--seeds", command.seeds)
    ranges, engine = _ranges(command), choose_engine(command.engine)
    import_optuna()  # a missing package shows before anything runs
    base = complete(command.run)
    lines = group_lines(command.table_lines.runs(base, command.seeds))
    with plain_warnings(console), count_bar("reading data", console) as count:
        check_data([run for runs in lines for run in runs], Folders(command.data_dir, _cache(command)), count)
    say(console, f"{len(lines)} lines, {command.trials} settings each, {command.seeds} seeds. Validation decides.")
    outcomes: list[Outcome] = []

    def train_all(runs: Sequence[Run]) -> list[Outcome]:
        outcomes.extend(
            found := run_on_engine(runs, command.out, command.data_dir, engine, console, command.engine.device)
        )
        return found

    trials = search(lines, ranges, command.trials, train_all)
    chosen = [choose_best(runs, tried) for runs, tried in zip(lines, trials, strict=True)]
    for line, tried in zip(chosen, trials, strict=True):
        if line is not None:
            say(console, _describe(line, tried[0].score))
    tuned = Tuned(base.setting, base.subject().dataset, command.seeds, tuple(line for line in chosen if line))
    write_tuned(command.settings, tuned, shlex.join(["arml", *sys.argv[1:]]))
    say(console, f"settings in {command.settings}; use them: arml compare {base.setting} --settings {command.settings}")
    return report_failures(outcomes, console)


def _cache(command: Tune[Run, Any]) -> Path:
    return open_root(command.out).local / "cache"


def _ranges(command: Tune[Run, Any]) -> Ranges:
    given = {
        "lr": command.lr_range,
        "weight_lr": command.weight_lr_range,
        "aux_scale": command.aux_scale_range,
    }
    for name, values in given.items():
        if values is not None and not 0 < values[0] <= values[1] < float("inf"):
            option = f"--{name.replace('_', '-')}-range"
            raise ValueError(f"{option} takes two positive numbers, the least first. Got {values[0]:g} {values[1]:g}.")
    return {name: values for name, values in given.items() if values is not None}


def _describe(line: TunedLine, first: float) -> str:
    values = ", ".join(f"{name} {value:.3g}" for name, value in line.values.items()) or "as the preset has it"
    names = " ".join(word for word in (line.learner, line.method) if word)
    return f"{names}: {values} (score on validation {line.score:.2f}, of the preset {first:.2f})"
