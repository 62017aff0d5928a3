"""Finds the command that was typed, and runs it."""

import sys
from argparse import ArgumentError, ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console

from arml.cli import bench, compare, data, demo, report, suite, train
from arml.cli.compare import Compare
from arml.cli.progress import say
from arml.cli.train import Train
from arml.lab.build import SETTINGS, Setting
from arml.lab.run import Run
from arml.lab.shortage import explain_shortages


@dataclass(frozen=True)
class Command:
    """The command behind one or two words."""

    options: Any
    """A dataclass whose fields are the options."""
    run: Callable[[Any, Console], int]
    default: Callable[[Sequence[str]], Any] | None = None
    """For commands of a setting: makes the defaults, which depend on ``--preset`` and ``--dataset``."""

    def about(self) -> str:
        """The first line of the command's help."""
        return str(getattr(self.options, "__origin__", self.options).__doc__).strip().splitlines()[0]


def _train(setting: Setting) -> Command:
    return Command(Train[setting.run], train.run_train, lambda words: Train(_preset(setting, words)))  # type: ignore[name-defined]


def _compare(setting: Setting) -> Command:
    return Command(
        Compare[setting.run, setting.table],  # type: ignore[name-defined]
        compare.run_compare,
        lambda words: _comparison(setting, _preset(setting, words)),
    )


def _comparison(setting: Setting, run: Run) -> Compare[Run, Any]:
    return Compare(run, setting.table_for(run), seeds=setting.seeds)


COMMANDS: dict[tuple[str, ...], Command] = {
    ("demo",): Command(demo.Demo, demo.run_demo),
    **{("train", name): _train(setting) for name, setting in SETTINGS.items()},
    **{("compare", name): _compare(setting) for name, setting in SETTINGS.items()},
    ("report",): Command(report.ReportRuns, report.run_report),
    ("labels",): Command(report.Labels, report.run_labels),
    ("suite",): Command(suite.SuiteOptions, suite.run_suite),
    ("bench",): Command(bench.Bench, bench.run_bench),
    ("data", "list"): Command(data.List, data.run_list),
    ("data", "fetch"): Command(data.Fetch, data.run_fetch),
    ("data", "check"): Command(data.Check, data.run_check),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns 0; 1 if something failed, 2 if the command is unknown."""
    words, console = list(sys.argv[1:] if argv is None else argv), Console()
    name = next((known for known in (tuple(words[:2]), tuple(words[:1])) if known in COMMANDS), None)
    if name is None:
        return _help(words, console)
    command, prog, words = COMMANDS[name], f"arml {' '.join(name)}", words[len(name) :]
    default = {"default": command.default(words)} if command.default is not None else {}
    try:
        options = tyro.cli(command.options, prog=prog, args=words, **default)
        with explain_shortages(getattr(options, "out", None) or Path()):
            return command.run(options, console)
    except (
        ValueError,
        OSError,
    ) as error:  # the input does not fit; anything else is a bug and shows its traceback
        say(Console(stderr=True, style="red"), f"{prog}: {error}")
        return 1
    except KeyboardInterrupt:
        say(
            Console(stderr=True),
            f"{prog}: stopped. Finished work is kept; train --resume continues from its checkpoint.",
        )
        return 130


def _preset(setting: Setting, words: Sequence[str]) -> Run:
    """The defaults that ``--preset`` and ``--dataset`` choose; the full parser rejects wrong names."""
    parser = ArgumentParser(add_help=False, exit_on_error=False, allow_abbrev=False)
    parser.add_argument("--preset", default="cpu")
    parser.add_argument("--dataset", default=setting.datasets[0])
    if setting.own_data:
        parser.add_argument(f"--{setting.own_data}", dest="own")
    try:
        known, _ = parser.parse_known_args(list(words))
    except ArgumentError:  # an option without its value, such as `--dataset -1`
        known, _ = parser.parse_known_args([])
    dataset = setting.own_data if getattr(known, "own", None) else known.dataset
    preset = setting.presets.get(known.preset, setting.presets["cpu"])
    return preset(dataset if dataset in setting.datasets else setting.datasets[0])


def _help(words: Sequence[str], console: Console) -> int:
    asked = not words or words[-1] in ("-h", "--help")
    if not asked:
        Console(stderr=True).print(f"Unknown command {' '.join(words[:2])!r}.", style="red", highlight=False)
    console.print("arml: how much each auxiliary task should count, learned in one training run\n")
    for name, command in COMMANDS.items():
        if not words or words[0] not in {known[0] for known in COMMANDS} or words[0] == name[0]:
            console.print(f"  arml {' '.join(name):<14} {command.about()}", highlight=False)
    console.print("\nEach command has --help.")
    return 0 if asked else 2
