"""Runs at URLs: what is copied, when, and that reports and later machines find it."""

from pathlib import Path

import fsspec
import pytest
from cli.typed import arml

from arml.lab import MultiLabel, run_all, train_run
from arml.lab.runs_root import RunsRoot, local_copy, open_root
from arml.lab.sweep import Outcome

QUICK = MultiLabel(network="mlp-8", batch_main=8, batch_aux=8, steps=6, evaluate_every=2, record_every=2)


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    """Where runs at a URL work."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    return tmp_path / "scratch"


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("s3://bucket/runs", "s3://bucket/runs"),
        (Path("s3://bucket/runs/"), "s3://bucket/runs"),
        (Path("memory://a/b"), "memory://a/b"),
        ("file:///tmp/x", "file:///tmp/x"),
        (Path("file:///tmp/x"), "file:///tmp/x"),
        ("runs", ""),
        ("/tmp/runs", ""),
        ("a:b/runs", ""),
    ],
)
def test_urls_are_recognised_also_after_they_were_made_a_path(given, url):
    assert open_root(given).url == url


def test_an_unknown_kind_of_url_is_an_error_that_names_it():
    with pytest.raises(ValueError, match=r"nowhere://bucket/runs cannot be opened"):
        open_root("nowhere://bucket/runs").pull("a")


def test_a_run_at_a_url_is_found_by_another_machine(tmp_path, scratch):
    memory = fsspec.filesystem("memory")
    outcome = train_run(QUICK, "memory://store/runs")
    name = f"/store/runs/{QUICK.name()}"
    found = {path.rpartition("/")[2] for path in memory.find(name)}
    assert found == {"record.jsonl", "checkpoint.pt", "done"}
    scratch.rename(tmp_path / "gone")  # another machine has nothing of it
    watched = []
    assert train_run(QUICK, "memory://store/runs", watch=watched.append) == outcome
    assert not watched, "it is complete"


def test_a_killed_run_continues_on_another_machine(tmp_path, scratch):
    run = MultiLabel(network="mlp-8", batch_main=8, batch_aux=8, steps=6, checkpoint_every=2, record_every=1)

    class Killed(BaseException):
        pass

    def die(record):
        if record["step"] == 5:
            raise Killed

    with pytest.raises(Killed):
        train_run(run, "memory://other/runs", watch=die)
    scratch.rename(tmp_path / "gone")
    steps = []
    train_run(run, "memory://other/runs", watch=lambda record: steps.append(record["step"]))
    assert steps[0] == 5, "the checkpoint after step 4 came along"
    train_run(run, tmp_path / "here")
    copied = fsspec.filesystem("memory").cat_file(f"/other/runs/{run.name()}/record.jsonl")
    assert copied == (tmp_path / "here" / run.name() / "record.jsonl").read_bytes()


def test_a_fresh_start_removes_what_is_at_the_url(tmp_path):
    root = RunsRoot(tmp_path / "local", "memory://third/runs")
    folder = root.local / "a"
    folder.mkdir(parents=True)
    for name in ("record.jsonl", "checkpoint.pt"):
        (folder / name).write_text(name)
    root.push("a")
    (folder / "checkpoint.pt").unlink()
    root.push("a")
    memory = fsspec.filesystem("memory")
    assert memory.find("/third/runs") == ["/third/runs/a/record.jsonl"], "what is gone here goes there"
    root.clear("a")
    assert not memory.find("/third/runs")
    root.pull("a")
    assert not list(folder.iterdir())


@pytest.mark.slow
def test_a_sweep_and_its_report_at_a_url(tmp_path):
    url = f"file://{tmp_path}/store"
    wrong = MultiLabel(main="Class99")
    outcomes: list[Outcome] = run_all([QUICK, wrong], url, workers=1)
    assert {outcome.run: outcome.failure is None for outcome in outcomes} == {QUICK: True, wrong: False}
    assert "Class99" in (tmp_path / "store" / wrong.name() / "failure.txt").read_text()
    assert (tmp_path / "store" / QUICK.name() / "done").exists()
    reported = arml("report", url, "--out", str(tmp_path / "report"))
    assert reported.returncode == 0, reported.stderr
    assert (tmp_path / "report" / "index.html").exists()
    assert "yeast" in reported.stdout


def test_a_local_folder_is_its_own_copy(tmp_path):
    assert local_copy(tmp_path) == tmp_path
