"""Every file that the documentation names exists, and every command of make."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STARTS = [ROOT, ROOT / "src", ROOT / "src" / "arml"]
"""Where a path in a text may begin."""
MADE = {"dist", "figures", "runs", "tensorboard"}
"""Folders that commands make."""
# The log tells what once was, and may name files that are gone.
PAGES = [*ROOT.glob("*.md"), *(page for page in (ROOT / "docs").glob("*.md") if page.name != "LOG.md")]
TOP_FOLDERS = [path.name for path in ROOT.iterdir() if path.is_dir() and path.name not in {".git", ".venv"}]


def without_blocks(page: Path) -> str:
    """The text of a page without its blocks of code."""
    return re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)


def named_paths(line: str) -> set[str]:
    """Python files, folders in backticks, and whatever begins with a folder of the repository; no ``<placeholders>``.

    >>> sorted(named_paths("`lab/build/`: `components.py`, not `methods/<paper>.py`; see docs/api.md."))
    ['components.py', 'docs/api.md', 'lab/build/']
    """
    python = re.findall(r"(?<![\w/<>.*-])[\w./-]+\.py\b", line)
    folders = re.findall(r"`((?:[\w.-]+/)+)`", line)
    tops = "|".join(map(re.escape, TOP_FOLDERS))
    others = re.findall(rf"(?<![\w/<>.*-])(?:{tops})/[\w./-]*\w(?![\w/]*[<*])", line)
    return {path for path in [*python, *folders, *others] if not path.endswith("yours.py")}


def missing_paths(text: str) -> list[str]:
    """Paths in ``text`` that do not exist. A file may also lie in a folder that the same line names."""
    missing = []
    for line in text.splitlines():
        paths = named_paths(line)
        starts = [*STARTS, *(start / path for start in STARTS for path in paths if path.endswith("/"))]
        missing += [
            path
            for path in sorted(paths)
            if path.split("/")[0] not in MADE and not any((start / path).exists() for start in starts)
        ]
    return missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_exist(page: Path) -> None:
    assert missing_paths(page.read_text()) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", without_blocks(page))
    paths = [link.partition("#")[0] for link in links if "://" not in link]
    assert [path for path in paths if path and not (page.parent / path).exists()] == []


@pytest.mark.parametrize("page", [*PAGES, ROOT / ".ci" / "run"], ids=lambda page: page.name)
def test_make_targets_exist(page: Path) -> None:
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    # Commands stand in backticks, or at the start of a line in a script or a block of code.
    commands = re.findall(r"(?:`|^(?:CI=1 )?)make ([a-z -]+?)(?:`|  |#|$)", page.read_text(), flags=re.MULTILINE)
    assert {target for command in commands for target in command.split()} <= known


def test_a_path_that_is_wrong_is_found() -> None:
    assert missing_paths("| draws | `report/output/`: `html.py`, `htlm.py` |\nsee `lab/nowhere/`") == [
        "htlm.py",
        "lab/nowhere/",
    ]


def test_names_in_contributing_exist() -> None:
    """Classes, functions and tables that the recipes mention."""
    text = without_blocks(ROOT / "CONTRIBUTING.md")
    names = {
        name.rpartition(".")[2] for name in re.findall(r"`([A-Za-z_][\w.]*)(?:\(\.*\w*\))?`", text) if "/" not in name
    }
    names = {name for name in names if "_" in name or name[:1].isupper()} - {"CHANGELOG", "Unreleased"}
    code = "\n".join(p.read_text() for folder in ("src", "tests") for p in (ROOT / folder).rglob("*.py"))
    assert {name for name in names if not re.search(rf"\b{name}\b", code)} == set()
    assert {"EVERY_METHOD", "DATASETS", "Reweighter", "file_error"} <= names
