"""The page on architecture visits every file once, and only files that exist."""

import re
from collections import Counter
from pathlib import Path

import arml

PACKAGE = Path(arml.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"


def test_every_file_is_visited_once():
    found = re.findall(r"`((?:[a-z_]+/)*[a-z0-9_]+\.py)`", PAGE.read_text())
    named = Counter(name for name in found if not name.startswith("tests/"))
    files = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"}
    assert set(named) == files
    assert {name for name, times in named.items() if times > 1} == set()
