"""Known vulnerabilities of pinned dependencies (pip-audit), and risky code in ``src`` (bandit).

Exit code 1: something was found. 2: the service of advisories cannot be reached, so the dependencies were not judged.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
REVIEWED = {
    "B704": "report/output/html.py marks as markup only what it escaped itself; tests feed the page with scripts",
}
"""Kinds of findings that were looked at, and why each of them is none."""


def check_code() -> int:
    """Findings of bandit of medium severity or more; 1 if there are any."""
    command = [sys.executable, "-m", "bandit", "-q", "-ll", "-r", "src", "--skip", ",".join(REVIEWED)]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    print(f"bandit: {'nothing of medium severity or more' if not found.returncode else found.stdout}")
    for kind, reason in REVIEWED.items():
        print(f"  not counted: {kind}: {reason}")
    return min(found.returncode, 1)


def check_dependencies() -> int:
    """Advisories on the versions in constraints.txt; 1 if there are any, 2 if there was no answer for a package."""
    command = [sys.executable, "-m", "pip_audit", "-r", "constraints.txt", "--no-deps", "--disable-pip", "-f", "json"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    try:
        packages = json.loads(answer.stdout)["dependencies"]
    except (ValueError, KeyError):
        last = (answer.stderr.strip().splitlines() or ["no reason is given"])[-1]
        print(f"pip-audit: the dependencies were not judged: {last}")
        return 2
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    bad = [package for package in packages if package.get("vulns")]
    for package in bad:
        advisories = ", ".join(one["id"] for one in package["vulns"])
        print(f"pip-audit: {package['name']} {package['version']}: {advisories}")
    print(f"pip-audit: {len(packages) - len(unknown)} of {len(packages)} packages judged, {len(bad)} with advisories")
    if unknown:
        print(
            f"pip-audit: no answer from the service of advisories for {len(unknown)} packages; try again with network"
        )
    return 1 if bad else 2 if unknown else 0


if __name__ == "__main__":
    sys.exit(max(check_code(), check_dependencies()))
