"""From typed words to options, with names that are hard to type."""

import json
from pathlib import Path

import pytest
from cli.typed import arml

from arml.cli.commands import COMMANDS
from arml.cli.main import parse
from arml.cli.words import restore

HARD = ("-x", "height, cm", "--odd")


def parsed(*words):
    return parse(COMMANDS["train", "mlc"], "arml", words).run


@pytest.mark.parametrize(
    ("words", "main", "aux"),
    [
        (["--main", "a", "--aux", "b", "c"], "a", ("b", "c")),
        (["--aux", "b", "--main", "a", "--aux", "c"], "a", ("b", "c")),
        (["--main=-x", "--aux=-y", "--aux=--z", "c"], "-x", ("-y", "--z", "c")),
        (["--main", "-x", "--aux", "b", "-y", "--steps", "7"], "-x", ("b", "-y")),
        (["--main", "a", "--aux", "b,c"], "a", ("b,c",)),
        (["--main", "a", "--main", "b"], "b", ()),
        (["--main", "a=b", "--aux=c=d"], "a=b", ("c=d",)),
    ],
)
def test_names_arrive_as_typed(words, main, aux):
    run = parsed(*words)
    assert (run.main, run.aux) == (main, aux)
    assert run.steps == (7 if "--steps" in words else 300)


@pytest.mark.parametrize(("word", "value"), [("none", None), ("None", None), ("7", 7.0)])
def test_none_means_none(word, value):
    assert parsed("--labels", word).labels == value


def test_numbers_may_be_negative_and_flags_stay_flags():
    assert parse(COMMANDS["labels",], "arml", ["runs", "--error", "-1", "--error", "2"]).error == (-1.0, 2.0)
    assert parse(COMMANDS["labels",], "arml", ["runs", "more"]).runs == (Path("runs"), Path("more"))
    assert parse(COMMANDS["compare", "mlc"], "arml", ["--aux", "a", "--forkmerge"]).table_lines.forkmerge


def test_paths_may_begin_with_a_dash():
    assert parse(COMMANDS["train", "ssl"], "arml", ["--out=-runs"]).out == Path("-runs")


def test_nothing_else_is_changed():
    run = parsed("--aux", "b")
    assert restore(run) is run


def test_columns_with_hard_names_through_the_real_command_line(tmp_path):
    rows = [f"{n % 2},{n % 3},{(n * 7) % 10},{n % 5},{(n * 3) % 11}" for n in range(90)]
    table = tmp_path / "hard.csv"
    table.write_text("\n".join(['-x,"height, cm",--odd,a,b', *rows]) + "\n")
    words = ["train", "mlc", "--table", str(table), "--main=-x", "--aux", "height, cm", "--aux=--odd"]
    quick = ["--steps", "4", "--evaluate-every", "2", "--record-every", "2", "--out", str(tmp_path / "runs")]
    done = arml(*words, *quick)
    assert done.returncode == 0, done.stderr
    (record,) = (tmp_path / "runs").glob("*/record.jsonl")
    run = json.loads(record.read_text().splitlines()[0])["run"]
    assert (run["main"], run["aux"]) == ("-x", ["height, cm", "--odd"])
    again = arml(*words[:-2], '"height, cm"', "--aux=--odd", *quick[:-1], str(tmp_path / "runs"))
    assert "This run is complete" in again.stdout, again.stderr
