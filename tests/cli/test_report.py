"""`arml report` and `arml labels` as a user types them."""

import shlex
import signal
import subprocess
import sys
import time
from dataclasses import fields, replace

import pytest
from bench.made_results import cost_file
from report.made_records import ssl_runs, write

from arml.cli import main
from arml.cli.commands import COMMANDS
from arml.cli.main import parse as parse_words
from arml.cli.report import defaults
from arml.lab.experiments import multi_label_runs, semi_supervised_runs
from arml.lab.run import split_names
from arml.lab.run_kinds import Domains, MultiLabel, SemiSupervised
from arml.report.commands import repeats, train_command


def words(text):
    return " ".join(text.split())


def test_report_writes_everything_and_says_where(tmp_path, capsys):
    ssl_runs(tmp_path / "runs", labels=(50, 100))
    cost_file(tmp_path / "runs" / "cost.json")
    (tmp_path / "runs" / "record.jsonl").write_text("{}\n")
    assert (
        main(
            [
                "report",
                str(tmp_path / "runs" / "cost.json"),
                *map(str, sorted((tmp_path / "runs").iterdir())),
                "--out",
                str(tmp_path / "report"),
                "--figures",
                "1",
            ]
        )
        == 0
    )
    out = capsys.readouterr().out
    text = words(out)
    assert "record.jsonl: is no record of a run" in text
    assert "Test results in %: digits, 50 labels" in text
    assert "Train with ARML: 15.6 % error instead of 20.5 % on the main task alone" in text
    assert "cannot tell yet: rotation, exemplar (not tried without: arml compare ssl)" in text
    assert text.index("Train with ARML") < text.index("Test results in %")
    assert f"report {tmp_path / 'report' / 'index.html'} (1 of" in out
    made = sorted(path.relative_to(tmp_path / "report").as_posix() for path in (tmp_path / "report").rglob("*.*"))
    assert made == ["figures/labels-digits.png", "figures/labels-digits.svg", "index.html", "tables.md", "tables.tex"]
    assert "arml train ssl --preset cpu --dataset digits" in (tmp_path / "report" / "index.html").read_text()


def test_report_of_nothing_says_what_to_give(tmp_path, capsys):
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "report")]) == 1
    assert "There is no record of a run in" in words(capsys.readouterr().err)
    assert main(["report", str(tmp_path / "nowhere")]) == 1
    assert "Found neither a folder nor a file" in words(capsys.readouterr().err)
    assert main(["report"]) == 1
    assert "No runs are given" in words(capsys.readouterr().err)


def test_cost_files_become_a_chart_and_those_that_cannot_be_read_are_listed(tmp_path, capsys):
    """As single files, below folders, and without any run."""
    (tmp_path / "runs" / "bench").mkdir(parents=True)
    (tmp_path / "wrong").mkdir()
    cost_file(tmp_path / "runs" / "bench" / "cost.json")
    wrong = tmp_path / "wrong" / "cost.json"
    wrong.write_text('{"something": "else"}')
    page = tmp_path / "report" / "index.html"
    for runs in (tmp_path / "runs", tmp_path / "runs" / "bench" / "cost.json"):
        assert main(["report", str(runs), str(wrong), "--out", str(page.parent), "--figures", "0"]) == 0
        line = f"skipped {wrong}: is no result of `arml bench`, or one of another version (KeyError('timings'))"
        assert line in capsys.readouterr().out
        assert "Cost of an update against the number of auxiliary tasks" in page.read_text()
        assert f"skipped {wrong}" in page.read_text()
        page.unlink()
    assert main(["report", str(wrong), "--out", str(page.parent)]) == 1
    assert "There is no record of a run in" in words(capsys.readouterr().err)
    assert main(["labels", str(tmp_path / "runs")]) == 1


def test_labels_shows_what_is_needed_and_saved(tmp_path, capsys):
    ssl_runs(tmp_path, labels=(20, 50, 100, 250))
    assert main(["labels", str(tmp_path), "--error", "14", "12"]) == 0
    text = words(capsys.readouterr().out)
    assert "Labels needed for an error of 14.00 %: digits" in text
    assert "Labels needed for an error of 12.00 %: digits" in text
    assert "of the labels that uniform weights need for an error of 14.00 %, n = 3 seeds." in text
    assert main(["labels", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["labels", str(tmp_path), "--average-precision", "40"]) == 1
    assert "No run has an average precision at two numbers of labels or more" in words(capsys.readouterr().err)


def test_labels_for_an_error_and_for_an_average_precision_of_the_same_runs(tmp_path, capsys):
    for labels, error, precision in ((30, 12.0, 20.0), (60, 11.0, 30.0), (120, 8.0, 40.0)):
        run = MultiLabel(dataset="celeba", main="Smiling", labels=labels, method="uniform")
        write(tmp_path, run, error, measured={"test_average_precision": precision})
    assert main(["labels", str(tmp_path), "--error", "9.5", "--average-precision", "25"]) == 0
    text = words(capsys.readouterr().out)
    assert "Labels needed for an error of 9.50 %" in text
    assert "84.9" in text  # half-way between 60 and 120, on a logarithmic axis
    assert "Labels needed for an average precision of 25.00 %" in text
    assert "42.4" in text  # half-way between 30 and 60
    assert main(["labels", str(tmp_path)]) == 0
    assert "Labels needed for an average precision of 30.00 %" in words(capsys.readouterr().out)


def test_labels_needs_more_than_one_number(tmp_path, capsys):
    ssl_runs(tmp_path)
    assert main(["labels", str(tmp_path)]) == 1
    assert "All runs have the same number of labels" in words(capsys.readouterr().err)


RUNS = [
    SemiSupervised(),
    SemiSupervised(seed=3, method="grid-0.5", labelled_in_pool=False, lr=None, lr_drop_at=(0.25, 0.5), weight_lr=0.1),
    replace(semi_supervised_runs.paper("cifar10"), learner="vat", seed=2),
    MultiLabel(main="a 'quoted' name", aux=("x y", "z;", "$HOME"), leave_out=("x y",), labels=None),
    MultiLabel(main="-dash", aux=("-x", "--y", "z"), network="mlp-16", labels=0.25),
    replace(multi_label_runs.paper("celeba"), lr_drop_at=()),
    MultiLabel(dataset="table", table="a folder/my table.csv", features=("f 1", "f2"), labels=None),
    Domains(shots="all", folders="my domains", dataset="folders", leave_out=("misleading",), weights="w.pt"),
]


def parse(command):
    """The run that the real command line makes of the words."""
    arml, first, second, *rest = shlex.split(command)
    assert (arml, first) == ("arml", "train")
    return parse_words(COMMANDS[first, second], "arml", rest).run


@pytest.mark.parametrize("run", RUNS, ids=range(len(RUNS)))
def test_commands_make_the_very_same_run(run):
    assert parse(train_command(run, defaults)) == run


def test_commands_leave_fingerprints_to_the_command_and_quote_names_with_commas():
    command = train_command(MultiLabel(table_digest="abc", aux=("height, cm", "age")), defaults)
    assert "digest" not in command
    assert split_names(parse(command).aux) == ("height, cm", "age")


def test_a_preset_keeps_commands_short():
    command = train_command(replace(semi_supervised_runs.paper("svhn"), seed=4), defaults)
    assert command == "arml train ssl --preset paper --dataset svhn --seed 4"


def test_seeds_share_a_command(tmp_path):
    (one,) = repeats([SemiSupervised(seed=seed) for seed in (2, 0, 1)], defaults)
    assert one.title == "digits, 50 labels: S4L + ARML"
    assert (
        one.command
        == 'for seed in 0 1 2; do arml train ssl --preset cpu --dataset digits --method arml --seed "$seed"; done'
    )
    shell = one.command.replace("arml train", "echo")
    output = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True).stdout.splitlines()
    assert output == [f"ssl --preset cpu --dataset digits --method arml --seed {seed}" for seed in range(3)]


def test_every_field_of_a_run_can_be_an_option():
    """A field of another type would need another form of option."""
    for kind in (SemiSupervised, MultiLabel, Domains):
        for one in fields(kind):
            assert isinstance(getattr(kind(), one.name), bool | int | float | str | tuple | None), one.name


def test_watching_rewrites_the_page_until_it_is_stopped(tmp_path):
    runs, out = tmp_path / "runs", tmp_path / "report"
    ssl_runs(runs, seeds=1)
    # Tests that run in the background ignore Ctrl-C, and so would their children.
    listening = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)"
    start = [sys.executable, "-c", f"{listening}; from arml.__main__ import main; sys.exit(main())"]
    command = [*start, "report", str(runs), "--out", str(out), "--watch", "--every", "0.2", "--figures", "0"]
    watching = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        _until(lambda: (out / "index.html").exists())
        assert "4 runs with 1 seed," in (out / "index.html").read_text()
        time.sleep(0.5)
        ssl_runs(runs, seeds=2)
        _until(lambda: "8 runs with 2 seeds" in (out / "index.html").read_text())
        assert "data-watch=" in (out / "index.html").read_text()
        time.sleep(1)  # the line about it follows the page
        watching.send_signal(signal.SIGINT)
        text = watching.communicate(timeout=60)[0]
    finally:
        watching.kill()
        watching.wait()
        watching.stdout.close()
    assert watching.returncode == 0
    assert "report rewritten" in text
    assert "data-watch=" not in (out / "index.html").read_text()


def _until(is_so, seconds=40):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_thousand_runs_are_read_and_shown_quickly(tmp_path):
    """The whole command takes less than 20 s on two cores; this leaves out starting and figure files."""
    from arml.report.contents import make_report
    from arml.report.data.records import collect
    from arml.report.output.html import page

    for seed in range(25):
        for labels in range(10, 110, 10):
            for method in ("uniform", "arml", "gated_arml", "ol_aux"):
                write(
                    tmp_path,
                    SemiSupervised(seed=seed, labels=labels, method=method),
                    30.0 - labels / 10 + seed / 10,
                    weights={"rotation": 0.5 + seed / 100, "exemplar": 1.5},
                    steps=tuple(range(25, 225, 25)),
                )
    start = time.process_time()
    collected = collect([tmp_path])
    text = page(make_report(collected, paper=False, defaults=defaults))
    assert len(collected.recorded) == 1000
    assert "1000 runs with 25 seeds" in text
    assert time.process_time() - start < 15
