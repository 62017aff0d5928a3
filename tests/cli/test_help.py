"""What the command line says about itself, and how soon."""

import re
import shlex
import subprocess
import sys

import pytest
from cli.typed import arml

import arml as package
from arml.cli.commands import COMMANDS
from arml.cli.help_text import GROUPS
from arml.cli.main import parse

HEAVY = ("torch", "pandas", "scipy", "sklearn", "numpy", "matplotlib", "rich")


def test_help_loads_nothing_heavy():
    typed = [["--help"], ["--version"], *([*name, "--help"] for name in COMMANDS)]
    code = f"import sys; from arml.__main__ import main\nfor words in {typed}: sys.argv[1:] = words; main()\n"
    code += f"sys.stderr.write(' '.join({{*sys.modules}} & {{*{HEAVY}}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(f"usage: arml {' '.join(name)} " in done.stdout for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS, ids=" ".join)
def test_help_explains_the_command_every_option_and_two_examples(name):
    text = arml(*name, "--help").stdout
    command = COMMANDS[name]
    assert text.startswith(f"usage: arml {' '.join(name)}")
    assert max(map(len, text.splitlines())) <= 90
    assert len(command.examples) == 2
    assert all(f"  {example}" in text for example in command.examples)
    for option in command.offered([]):
        assert option.text.endswith("."), option.field
        assert option.text.split()[0] in text
        assert len(re.findall(rf"^  {option.flag}\b(?!-)", text, flags=re.M)) == (not option.positional), option.flag


@pytest.mark.parametrize(("name", "example"), [(name, e) for name, one in COMMANDS.items() for e in one.examples])
def test_examples_can_be_typed(name, example):
    words = shlex.split(example)
    assert tuple(words[1 : 1 + len(name)]) == name
    parse(COMMANDS[name], "arml", words[1 + len(name) :])


def test_settings_have_their_own_words():
    texts = {name: arml("compare", name, "--help").stdout for name in ("ssl", "mlc", "dg")}
    assert "many have none" in texts["ssl"]
    assert "One column of a table" in texts["mlc"]
    assert "photos and sketches" in texts["dg"]


def test_many_options_stand_under_headings():
    text = arml("train", "ssl", "--help").stdout
    found = [line[:-1] for line in text.splitlines() if line[:-1] in GROUPS]
    assert found == ["What to learn from", "How to learn", "Where and how to run", "Fine points"]


def test_presets_are_the_defaults_that_help_shows():
    text = arml("train", "ssl", "--preset", "paper", "--dataset", "cifar10", "--help").stdout
    assert "(default: 200000)" in text
    assert "(default: wrn-28-2)" in text
    assert "(default: 4000)" in text


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",), ("help",)])
def test_the_commands_are_listed(words):
    listed = arml(*words)
    assert listed.returncode == 0
    assert all(f"  arml {' '.join(name)} " in listed.stdout for name in COMMANDS)


def test_version():
    assert arml("--version").stdout == f"arml {package.__version__}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("trian", "ssl"), "unknown command 'trian'. Did you mean train?"),
        (("comapre",), "unknown command 'comapre'. Did you mean compare?"),
        (("fly",), "unknown command 'fly'. `arml --help` lists all commands."),
        (("train",), "train needs one of ssl, mlc, dg."),
        (("train", "mcl"), "Got 'mcl'. Did you mean mlc?"),
        (("data", "fetsh"), "Got 'fetsh'. Did you mean fetch?"),
    ],
)
def test_a_wrong_word_gets_the_nearest_known_one(words, message):
    failed = arml(*words)
    assert failed.returncode == 2
    assert message in " ".join(failed.stderr.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train", "ssl", "--method", "gradnrom"), "--method has no 'gradnrom'. Did you mean gradnorm? Known: uniform"),
        (("compare", "ssl", "--methods", "uniform", "amrl"), "--methods has no 'amrl'. Did you mean arml?"),
        (("compare", "ssl", "--seed", "3"), "--seed is no option here: several seeds are trained: use --seeds N."),
        (
            ("compare", "dg", "--learner=jt"),
            "--learner is no option here: several learners are trained: use --learn",
        ),
        (("compare", "mlc", "--method", "arml"), "several methods are trained: use --methods NAME ..."),
        (("train", "mlc", "--table-digest", "0"), "--table-digest is no option here: arml fills it in."),
        (("train", "mlc", "--table_digest=0"), "--table-digest is no option here"),
        (
            ("train", "ssl", "--lables", "50"),
            "arml train ssl: Unknown option --lables. Did you mean --labels? --help lists all options.",
        ),
        (("train", "mlc", "--methd=arml"), "Unknown option --methd. Did you mean --method? --help"),
        (("compare", "mlc", "--no-leave-one"), "Unknown option --no-leave-one. Did you mean --no-leave-one-out?"),
    ],
)
def test_what_cannot_be_chosen_is_explained_at_once(words, message):
    failed = arml(*words)
    assert failed.returncode == 1
    assert message in " ".join(failed.stderr.split())


def test_hidden_options_are_in_no_help():
    text = arml("compare", "mlc", "--help").stdout
    assert "digest" not in text
    assert not re.search(r"--(seed|method|learner) ", text)
