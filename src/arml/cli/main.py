"""Finds the command that was typed, and runs it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from arml import __version__
from arml.cli.commands import COMMANDS, Command
from arml.cli.words import prepare, restore, suggest
from arml.lab.stopping import Stopped, end_on_sigterm, leave_on_ctrl_c

HELP = ("-h", "--help")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns 0; 1 if something failed, 2 if the command is unknown."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in (*HELP, "help"):
        return _print(list_commands())
    if words[0] == "--version":
        return _print(f"arml {__version__}")
    name = next((known for known in (tuple(words[:2]), tuple(words[:1])) if known in COMMANDS), None)
    if name is None:
        return _explain_unknown(words)
    command, prog, words = COMMANDS[name], f"arml {' '.join(name)}", words[len(name) :]
    if not {*HELP}.isdisjoint(words):
        return _print(command.help(prog, words))
    return _run(command, prog, words)


def _run(command: Command, prog: str, words: Sequence[str]) -> int:
    with leave_on_ctrl_c():
        # Imported here: help should not wait for them.
        from rich.console import Console

        from arml.cli.progress import say
        from arml.lab.shortage import explain_shortages
    try:
        options = parse(command, prog, words)
        with leave_on_ctrl_c():
            run = command.load()
        with end_on_sigterm(), explain_shortages(getattr(options, "out", None) or Path()):
            return run(options, Console())
    except (
        ValueError,
        OSError,
    ) as error:  # the input does not fit; anything else is a bug and shows its traceback
        say(Console(stderr=True, style="red"), f"{prog}: {error}")
        return 1
    except Stopped as stopped:
        hint = f". Continue with: {prog} ... --resume" if " train " in f" {prog} " else ""
        say(Console(stderr=True), f"{prog}: {stopped}{hint}")
        return stopped.exit_code
    except KeyboardInterrupt:
        say(
            Console(stderr=True),
            f"{prog}: stopped. Finished work is kept; train --resume continues from its checkpoint.",
        )
        return 130


def parse(command: Command, prog: str, words: Sequence[str]) -> Any:
    """The options of ``command``; ends the program with an explanation if the words do not fit."""
    import tyro

    refusals = command.refusals(words)
    for word in words:
        if (flag := word.partition("=")[0].replace("_", "-")) in refusals:
            raise ValueError(f"{flag} is no option here: {refusals[flag]}.")
    default = {"default": command.default(words)} if command.default is not None else {}
    given = prepare(words, command.offered(words))
    return restore(tyro.cli(command.options, prog=prog, args=given, **default))


def list_commands(first: str = "") -> str:
    """Every command under its heading, or those that begin with a word."""
    headings: dict[str, list[str]] = {}
    for name, command in COMMANDS.items():
        if first in ("", name[0]):
            headings.setdefault(command.heading, []).append(f"  arml {' '.join(name):<12} {command.summary}")
    listed = "\n\n".join("\n".join([heading, *lines]) for heading, lines in headings.items())
    if first:
        return listed
    title = "arml: how much each auxiliary task should count, learned in one training run"
    return f"{title}\n\n{listed}\n\narml COMMAND --help explains a command; arml --version."


def _explain_unknown(words: Sequence[str]) -> int:
    """Names the nearest command, or lists what can follow the first word."""
    firsts = list(dict.fromkeys(name[0] for name in COMMANDS))
    if words[0] not in firsts:
        near = suggest(words[0], firsts)
        sys.stderr.write(f"arml: unknown command {words[0]!r}.{near} `arml --help` lists all commands.\n")
        return 2
    if len(words) > 1 and words[1] in HELP:
        return _print(list_commands(words[0]))
    seconds = [name[1] for name in COMMANDS if name[0] == words[0]]
    typed = f"Got {words[1]!r}.{suggest(words[1], seconds)}" if len(words) > 1 else ""
    sys.stderr.write(f"arml: {words[0]} needs one of {', '.join(seconds)}. {typed}".rstrip() + "\n\n")
    sys.stderr.write(list_commands(words[0]) + "\n")
    return 2


def _print(text: str) -> int:
    sys.stdout.write(f"{text}\n")
    return 0
