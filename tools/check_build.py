"""Tries the wheel and the sdist that ``make build`` made: ``python tools/check_build.py dist``.

The wheel is installed twice in throw-away environments: without extras, and with ``lab``. What it requires is not
downloaded again but linked from the environment that runs this script, and nothing else is: a dependency that
pyproject.toml does not name is missed here.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

IN_WHEEL = [
    "py.typed",
    "report/output/page.css",
    "report/output/page.html",
    "report/output/page.js",
    "theory/page.html",
]
IN_WHEEL += ["report/output/plotly-cartesian.min.js", "report/output/plotly.LICENSE"]
IN_SDIST = [
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "constraints.txt",
    "Makefile",
    "tests/conftest.py",
]


def the_only(folder: Path, pattern: str) -> Path:
    """The one file in ``folder`` that matches ``pattern``."""
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise ValueError(f"Expected one {pattern} in {folder}. Got {[path.name for path in found]}: run `make build`.")
    return found[0]


def check_contents(wheel: Path, sdist: Path) -> None:
    """Data files are in the wheel; what a packager needs is in the sdist."""
    inside = set(zipfile.ZipFile(wheel).namelist())
    if missing := [name for name in IN_WHEEL if f"arml/{name}" not in inside]:
        raise ValueError(f"{wheel.name} lacks {missing}.")
    if strange := sorted({name.split("/")[0] for name in inside if not name.startswith("arml")}):
        raise ValueError(f"{wheel.name} holds {strange} beside the package.")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    if missing := [name for name in IN_SDIST if name not in names]:
        raise ValueError(f"{sdist.name} lacks {missing}.")


def required(requirements: list[str], extras: set[str]) -> Iterator[Requirement]:
    """Those of ``requirements`` that apply here when the named ``extras`` are asked for."""
    for requirement in map(Requirement, requirements):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in {"", *extras}):
            yield requirement


def requirement_closure(requirements: list[str], extras: set[str]) -> dict[str, Distribution]:
    """Distributions of this environment that an installation would bring, those that others require included."""
    found: dict[str, Distribution] = {}
    waiting = [(requirement, requirement.extras) for requirement in required(requirements, extras)]
    while waiting:
        requirement, wanted = waiting.pop()
        key = f"{requirement.name}{sorted(wanted)}".lower()
        if key not in found:
            found[key] = distribution(requirement.name)
            more = required(found[key].requires or [], wanted)
            waiting += [(requirement, requirement.extras) for requirement in more]
    return found


def link(package: Distribution, site_packages: Path) -> None:
    """Links everything that ``package`` put into its site-packages into another."""
    for first in {path.parts[0] for path in package.files or [] if path.parts[0] not in ("..", "__pycache__")}:
        source, target = Path(str(package.locate_file(first))).resolve(), site_packages / first
        if source.exists() and not target.exists():
            target.symlink_to(source)


def install(wheel: Path, extras: set[str], root: Path) -> Path:
    """Makes an environment in ``root`` with the wheel and what it requires. Returns its folder of commands."""
    venv.create(root)
    commands = root / "bin"
    pip(commands, "install", "--quiet", "--no-deps", "--no-index", str(wheel))
    site_packages = the_only(root, "lib/python*/site-packages")
    metadata = Distribution.at(the_only(site_packages, "arml-*.dist-info"))
    for package in requirement_closure(metadata.requires or [], extras).values():
        link(package, site_packages)
    pip(commands, "check")
    return commands


def pip(commands: Path, *words: str) -> None:
    """Runs this environment's pip on another."""
    run(sys.executable, "-m", "pip", "--python", commands / "python", *words)


def run(*words: str | Path, code: int = 0) -> str:
    """What a command writes; an error if it does not end with ``code``."""
    # No PYTHONPATH and another folder: what is tried is the wheel, not the sources.
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(words, capture_output=True, text=True, cwd=tempfile.gettempdir(), env=clean, check=False)
    said = done.stdout + done.stderr
    if done.returncode != code:
        raise RuntimeError(f"{' '.join(map(str, words))} ended with {done.returncode} instead of {code}:\n{said}")
    return said


def check_core(wheel: Path, root: Path) -> None:
    """Without extras the library imports, and the command says what to install."""
    commands = install(wheel, set(), root)
    print(run(commands / "python", "-c", "import arml; print(arml.__version__, arml.__file__)").strip())
    if "pip install 'arml[lab]'" not in (said := run(commands / "arml", "--help", code=2)):
        raise RuntimeError(f"Without the extra lab, arml should say what to install. It said: {said}")


def check_lab(wheel: Path, root: Path) -> None:
    """With the extra ``lab`` the command works."""
    commands = install(wheel, {"lab"}, root)
    if "compare" not in (said := run(commands / "arml", "--help")):
        raise RuntimeError(f"arml --help should list the commands. It said: {said}")


def main() -> None:
    """Checks what lies in the folder named by the first argument."""
    folder = Path(sys.argv[1]).resolve()
    wheel, sdist = the_only(folder, "arml-*.whl"), the_only(folder, "arml-*.tar.gz")
    check_contents(wheel, sdist)
    with tempfile.TemporaryDirectory(prefix="arml-build-") as scratch:
        check_core(wheel, Path(scratch) / "core")
        check_lab(wheel, Path(scratch) / "lab")
    print(f"{wheel.name} and {sdist.name} are complete; the wheel works without and with the extra lab.")


if __name__ == "__main__":
    main()
