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
from arml.lab.tune import Space, Trial, choose_best, group_lines, import_optuna, search
from arml.lab.tuned import Tuned, Value, line_key, write_tuned


def run_tune(command: Tune[Run, Any], console: Console) -> int:
    """Searches, shows what was chosen and writes it; returns 1 if a run failed."""
    check_at_least_one("--trials", command.trials)
    check_at_least_one("--seeds", command.seeds)
    space, engine = _space(command), choose_engine(command.engine)
    import_optuna()  # a missing package shows before anything runs
    base = complete(command.run)
    lines = group_lines(command.table_lines.runs(base, command.seeds))
    everything = [run for runs in lines for run in runs]
    with plain_warnings(console), count_bar("reading data", console) as count:
        check_data(everything, Folders(command.data_dir, _cache(command)), count)
    effort = f"{command.trials} settings {'for all of them' if command.together else 'each'}, {command.seeds} seeds"
    say(console, f"{len(lines)} lines, {effort}. Validation decides.")
    groups = [everything] if command.together else lines
    outcomes: list[Outcome] = []

    def train_all(runs: Sequence[Run]) -> list[Outcome]:
        outcomes.extend(
            found := run_on_engine(runs, command.out, command.data_dir, engine, console, command.engine.device)
        )
        return found

    results = [*zip(groups, search(groups, space, command.trials, train_all), strict=True)]
    chosen = tuple(line for runs, trials in results for line in choose_best(runs, trials))
    tried = [text for runs, trials in results for text in _describe(runs, trials)]
    say(console, *tried)
    tuned = Tuned(base.setting, base.subject().dataset, command.seeds, chosen)
    write_tuned(command.settings, tuned, shlex.join(["arml", *sys.argv[1:]]), tried)
    say(console, f"settings in {command.settings}; use them: arml compare {base.setting} --settings {command.settings}")
    return report_failures(outcomes, console)


def _cache(command: Tune[Run, Any]) -> Path:
    return open_root(command.out).local / "cache"


def _space(command: Tune[Run, Any]) -> Space:
    given = {
        "lr": command.lr_range,
        "weight_lr": command.weight_lr_range,
        "aux_scale": command.aux_scale_range,
    }
    for name, values in given.items():
        if values is not None and not 0 < values[0] <= values[1] < float("inf"):
            option = f"--{name.replace('_', '-')}-range"
            raise ValueError(f"{option} takes two positive numbers, the least first. Got {values[0]:g} {values[1]:g}.")
    for count in command.step_counts:
        check_at_least_one("--step-counts", count)
    ranges = {name: values for name, values in given.items() if values is not None}
    choices: dict[str, tuple[Value, ...]] = {"network": command.networks, "steps": command.step_counts}
    return Space(ranges, {name: values for name, values in choices.items() if values})


def _describe(runs: Sequence[Run], trials: Sequence[Trial]) -> list[str]:
    """What was tried, the best first."""
    lines = ", ".join(" ".join(filter(None, key)) for key in dict.fromkeys(line_key(run) for run in runs))
    ordered = sorted(trials, key=lambda trial: trial.score)
    return [f"{lines}:", *(f"  {trial.score:.2f} on validation: {_words(trial)}" for trial in ordered)]


def _words(trial: Trial) -> str:
    words = (
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}" for name, value in trial.values.items()
    )
    return ", ".join(words) or "as the preset has it"
