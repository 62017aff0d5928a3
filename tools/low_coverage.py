"""Names the files whose coverage is low: ``coverage json -q -o - | python tools/low_coverage.py``."""

import json
import sys
from typing import Any

LIMIT = 85.0
"""Percent of lines and branches below which a file is named."""


def low_files(report: dict[str, Any], limit: float = LIMIT) -> list[tuple[str, float]]:
    """Files of coverage's JSON report below ``limit`` percent, lowest first.

    >>> low_files({"files": {"a.py": {"summary": {"percent_covered": 84.9}}}})
    [('a.py', 84.9)]
    """
    covered = {path: float(found["summary"]["percent_covered"]) for path, found in report["files"].items()}
    return sorted(((path, percent) for path, percent in covered.items() if percent < limit), key=lambda pair: pair[1])


def main() -> None:
    """Reads the report from standard input."""
    found = low_files(json.load(sys.stdin))
    print(f"{len(found) or 'No'} files are covered to less than {LIMIT:g} %{':' if found else '.'}")
    for path, percent in found:
        print(f"  {percent:5.1f} %  {path}")


if __name__ == "__main__":
    main()
