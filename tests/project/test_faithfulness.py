"""The page on faithfulness has a row for every system, and every test that it names exists."""

import ast
import re
from pathlib import Path

import pytest

from arml.lab.catalogue import GRID_SEARCH, LEARNERS, METHODS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "faithfulness.md"
SETTINGS = ("ssl", "mlc", "dg")
"""Those of the paper."""
WEIGHTINGS = ("uniform", "adaloss", "gradnorm", "cosine_sim", "ol_aux", "arml", "arml_full", GRID_SEARCH)
"""Those of the paper."""

NEWER = {"forkmerge", "linear", "forest", "stacking", "aux_inputs"}
"""Learners that the paper does not have."""


def split_rows(text: str) -> list[list[str]]:
    """The cells of every row of the tables in ``text``, without headings."""
    rows = [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in text.splitlines() if line.startswith("|")]
    return [row for row in rows if row[0] != "system" and not row[0].startswith("---")]


def missing_tests(cell: str) -> list[str]:
    """Tests named in ``cell``, as path::name, that do not exist."""
    named = [name.split("::") for name in re.findall(r"`([^`]*::[^`]*)`", cell)]
    return ["::".join([path, name]) for path, name in named if name not in function_names(ROOT / path)]


def function_names(path: Path) -> set[str]:
    """The functions in a file of tests; none if it does not exist."""
    tree = ast.parse(path.read_text()) if path.is_file() else ast.Module([], [])
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", split_rows(PAGE.read_text()), ids=lambda row: row[0])
def test_every_row_is_whole_and_shown_by_a_test_that_exists(row):
    assert len(row) == 5
    assert all(cell.strip() for cell in row)
    assert "::test_" in row[-1]
    assert missing_tests(row[-1]) == []


def test_every_learner_and_weighting_of_the_paper_has_a_row():
    systems = " ".join(row[0] for row in split_rows(PAGE.read_text()))
    wanted = {name for setting in SETTINGS for name in LEARNERS[setting]} - NEWER | set(WEIGHTINGS)
    assert {name for name in wanted if f"`{name}`" not in systems} == set()
    assert set(WEIGHTINGS) - {GRID_SEARCH} <= set(METHODS)


def test_a_test_that_is_gone_is_found():
    here = "tests/project/test_faithfulness.py"
    cell = f"`{here}::test_a_test_that_is_gone_is_found`, `{here}::test_nothing`, `tests/nowhere.py::test_it`"
    assert missing_tests(cell) == [f"{here}::test_nothing", "tests/nowhere.py::test_it"]
