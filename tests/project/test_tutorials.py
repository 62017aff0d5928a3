"""The tutorials run as they stand, in an empty folder. `make docs` runs them in a notebook's kernel."""

import re
from pathlib import Path

import pytest

TUTORIALS = sorted((Path(__file__).parents[2] / "docs" / "tutorials").glob("*.md"))


@pytest.mark.long
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    cells = re.findall(r"^```\{code-cell\}\n(.*?)^```$", path.read_text(), flags=re.M | re.S)
    assert len(cells) >= 2
    namespace: dict = {}
    for cell in cells:
        exec(cell, namespace)
    assert namespace.get("done") is None or namespace["done"].returncode == 0, namespace["done"].stderr
    assert capsys.readouterr().out


def test_every_tutorial_is_a_notebook():
    assert len(TUTORIALS) == 3
    assert all("file_format: mystnb" in path.read_text().partition("# ")[0] for path in TUTORIALS)
