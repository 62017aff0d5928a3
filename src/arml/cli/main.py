"""From the words typed to the command."""

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tyro
from rich.console import Console

from arml.cli import compare, data, train
from arml.lab.experiments.semi_supervised import PRESETS
from arml.lab.run import Run


@dataclass(frozen=True)
class Command:
    """What two words on the command line stand for."""

    settings: type[Any]
    run: Callable[[Any, Console], int]
    has_presets: bool = False
    """Whether ``--preset`` and ``--dataset`` decide the defaults of the other options."""

    def about(self) -> str:
        """The first line of its help."""
        return (self.settings.__doc__ or "").strip().splitlines()[0]


COMMANDS: dict[tuple[str, str], Command] = {
    ("train", "ssl"): Command(train.Train, train.run_train, has_presets=True),
    ("compare", "ssl"): Command(compare.Compare, compare.run_compare, has_presets=True),
    ("data", "list"): Command(data.List, data.run_list),
    ("data", "fetch"): Command(data.Fetch, data.run_fetch),
    ("data", "check"): Command(data.Check, data.run_check),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; 0 if all went well, 1 if something failed, 2 if the words could not be understood."""
    words, console = list(sys.argv[1:] if argv is None else argv), Console()
    command = COMMANDS.get((words[0], words[1])) if len(words) > 1 else None
    if command is None:
        return _help(words, console)
    prog = f"arml {words[0]} {words[1]}"
    default = {"default": command.settings(run=_preset(words[2:]))} if command.has_presets else {}
    settings = tyro.cli(command.settings, prog=prog, args=words[2:], **default)
    try:
        return command.run(settings, console)
    except ValueError as error:  # what the user gave does not fit; anything else is a bug and shows its place
        Console(stderr=True).print(f"{prog}: {error}", style="red", highlight=False)
        return 1
    except KeyboardInterrupt:
        Console(stderr=True).print(
            f"{prog}: stopped. Run it again to go on from the last checkpoint (train: with --resume)."
        )
        return 130


def _preset(words: Sequence[str]) -> Run:
    """The defaults that ``--preset`` and ``--dataset`` stand for; wrong names are left to the full parser."""
    parser = ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("--preset", default="cpu")
    parser.add_argument("--dataset", default="digits")
    known, _ = parser.parse_known_args(list(words))
    preset = PRESETS.get(known.preset, PRESETS["cpu"])
    return preset(known.dataset if known.dataset in ("digits", "mnist5k", "cifar10", "svhn") else "digits")


def _help(words: Sequence[str], console: Console) -> int:
    asked = not words or words[-1] in ("-h", "--help")
    if not asked:
        Console(stderr=True).print(f"Unknown command {' '.join(words[:2])!r}.", style="red", highlight=False)
    console.print("arml: how much each auxiliary task should count, learned in one training run\n")
    for (first, second), command in COMMANDS.items():
        if not words or words[0] not in {name for name, _ in COMMANDS} or words[0] == first:
            console.print(f"  arml {first} {second:<8} {command.about()}", highlight=False)
    console.print("\nEach of them has --help.")
    return 0 if asked else 2
