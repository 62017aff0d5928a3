"""The command line as a user types it."""

import ast
import builtins
import inspect
import itertools
import json
import signal
import subprocess
import sys
from textwrap import dedent

import pytest

from arml.__main__ import main as entry
from arml.cli import main
from arml.cli.commands import COMMANDS
from arml.lab.build.semi_supervised import DATASETS
from arml.lab.run import Run
from arml.lab.settings import SETTINGS
from arml.lab.stopping import leave_on_ctrl_c

QUICK = [
    "--steps",
    "4",
    "--batch-labelled",
    "8",
    "--batch-unlabelled",
    "8",
    "--evaluate-every",
    "2",
    "--record-every",
    "2",
]


def arml(*words):
    return subprocess.run([sys.executable, "-m", "arml", *words], capture_output=True, text=True, timeout=120)


OPTIONS = {Run, *(part for setting in SETTINGS.values() for part in (setting.run, setting.table))}
OPTIONS |= {getattr(command.options, "__origin__", command.options) for command in COMMANDS.values()}


@pytest.mark.parametrize("options", sorted(OPTIONS, key=repr), ids=lambda options: options.__qualname__)
def test_every_option_has_a_sentence(options):
    (tree,) = ast.parse(inspect.getsource(options)).body
    for statement, following in itertools.pairwise([*tree.body, None]):
        hidden = isinstance(statement, ast.AnnAssign) and (
            statement.target.id in ("run", "table_lines") or "ClassVar" in ast.unparse(statement.annotation)
        )
        if isinstance(statement, ast.AnnAssign) and not hidden:
            assert isinstance(following, ast.Expr), statement.target.id
            assert following.value.value.endswith("."), statement.target.id


def test_without_the_lab_the_command_says_what_to_install():
    code = "import sys; sys.modules['tyro'] = None; from arml.__main__ import main; sys.exit(main())"
    failed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert failed.returncode == 2
    assert failed.stderr == "arml: the command line needs the package tyro: pip install 'arml[lab]'\n"


def test_train_says_where_things_are_and_does_not_repeat_itself(tmp_path):
    done = arml("train", "ssl", *QUICK, "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "test error" in done.stdout
    assert "record.jsonl" in done.stdout.replace("\n", "")
    again = arml("train", "ssl", *QUICK, "--out", str(tmp_path))
    assert "This run is complete" in again.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "ssl", "--threads", "0"], "--threads should be at least 1. Got 0."),
        (["train", "ssl", "--steps", "0"], "`steps` should be at least 1. Got 0."),
        (["train", "ssl", "--seed", "-1"], "`seed` should be at least 0. Got -1."),
        (["compare", "ssl", "--seeds", "0"], "--seeds should be at least 1. Got 0."),
        (["compare", "ssl", "--workers", "0"], "--workers should be at least 1. Got 0."),
        (["demo", "--seeds", "0"], "--seeds should be at least 1. Got 0."),
    ],
)
def test_numbers_out_of_range_are_refused(words, message, capsys):
    assert main(words) == 1
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_file_in_the_place_of_a_folder_is_said(tmp_path, capsys):
    (tmp_path / "runs").write_text("")
    assert main(["train", "ssl", *QUICK, "--out", str(tmp_path / "runs")]) == 1
    assert "Not a directory" in capsys.readouterr().err


def test_missing_data_gets_an_error_that_helps(tmp_path):
    failed = arml("train", "ssl", "--dataset", "cifar10", "--data-dir", str(tmp_path), "--out", str(tmp_path))
    assert failed.returncode == 1
    message = " ".join(failed.stderr.split())
    assert "arml data fetch cifar10" in message
    assert "Traceback" not in message


def test_compare_makes_a_table_and_survives_a_failing_line(tmp_path):
    words = ["compare", "ssl", *QUICK, "--seeds", "2", "--learners", "supervised", "--methods", "uniform", "arml"]
    done = arml(*words, "--no-grid", "--no-leave-one-out", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    table = json.loads((tmp_path / "compare-ssl-digits.json").read_text())
    lines = [(row["line"]["learner"], row["line"]["method"]) for row in table]
    assert lines == [("supervised", ""), ("s4l", "uniform"), ("s4l", "arml")]
    assert {row["metrics"]["error"]["n"] for row in table} == {2}
    assert "S4L + ARML" in done.stdout
    # Two labels a class for a class that has not got them: every run fails, the others' table is still shown.
    failed = arml(*words, "--no-grid", "--no-leave-one-out", "--out", str(tmp_path), "--label-counts", "50", "100000")
    assert failed.returncode == 1
    assert "6 of 12 runs failed" in failed.stdout
    assert "S4L + ARML" in failed.stdout
    assert list(tmp_path.glob("digits-100000-*/failure.txt"))


def test_data_commands(tmp_path):
    listed = arml("data", "list", "--data-dir", str(tmp_path))
    assert listed.returncode == 0
    assert all(name in listed.stdout for name in DATASETS)
    checked = arml("data", "check", "digits")
    assert "1437 images" in checked.stdout
    unknown = arml("data", "check", "imagenet")
    assert unknown.returncode == 1
    assert "Unknown data set 'imagenet'. Known: digits" in " ".join(unknown.stderr.split())


def test_ctrl_c_while_packages_are_imported_is_no_traceback(monkeypatch, capsys):
    def interrupt(name, *given):
        if name == "arml.cli":
            raise KeyboardInterrupt
        return real(name, *given)

    real = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", interrupt)
    assert entry() == 130
    assert capsys.readouterr().err == "arml: stopped before it began.\n"


@pytest.mark.parametrize("words", [["--dataset", "-1"], ["--preset", "-x"], ["--dataset"]])
def test_an_option_without_its_value_is_explained(words, capsys):
    try:
        code = main(["train", "mlc", *words])
    except SystemExit as stopped:
        code = stopped.code
    assert code in (1, 2)
    assert words[0] in capsys.readouterr().err


def test_ctrl_c_while_packages_are_imported_ends_at_once():
    """An import that swallows the interrupt, as some do, cannot keep the process alive."""
    script = """
        import os, signal, time
        from arml.lab.stopping import leave_on_ctrl_c
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background has it ignored
        with leave_on_ctrl_c():
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(5)
            except KeyboardInterrupt:
                pass
    """
    done = subprocess.run([sys.executable, "-c", dedent(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "arml: stopped before it began.\n")


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.default_int_handler])
def test_ctrl_c_does_what_it_did_before_packages_were_imported(handler):
    before = signal.signal(signal.SIGINT, handler)
    try:
        with leave_on_ctrl_c():
            assert (signal.getsignal(signal.SIGINT) is handler) == (handler is signal.SIG_IGN)
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
