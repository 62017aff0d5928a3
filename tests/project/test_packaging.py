"""What a release promises: versions, pins, and the tools that check them."""

import json
import re
import subprocess
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import arml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINS = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split())


def tool(name: str) -> ModuleType:
    """A script in ``tools`` as a module."""
    spec = spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_changelog_and_citation_know_the_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", changelog, flags=re.MULTILINE)
    assert versions[0] == ("Unreleased", "")
    assert versions[1][0] == arml.__version__
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {arml.__version__}\n" in citation
    assert f'date-released: "{versions[1][1]}"\n' in citation


@pytest.mark.parametrize(
    "line", [*PROJECT["dependencies"], *(line for extra in PROJECT["optional-dependencies"].values() for line in extra)]
)
def test_every_dependency_has_a_lower_bound_and_a_pin_that_it_allows(line: str) -> None:
    requirement = Requirement(line)
    pins = {canonicalize_name(name): version for name, version in PINS.items()}
    assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)])
    assert any(part.operator == ">=" for part in requirement.specifier)


def test_no_file_names_a_package_index() -> None:
    tracked = [ROOT / name for name in ("Makefile", "pyproject.toml", "constraints.txt", ".ci/run")]
    for path in [*tracked, *(ROOT / ".github").rglob("*.yml")]:
        assert not re.search(r"index-url|find-links", path.read_text()), path


# Coverage


def test_files_with_low_coverage_are_named_lowest_first() -> None:
    percents = {"good.py": 85.0, "weak.py": 84.99, "bare.py": 0}
    report = {"files": {path: {"summary": {"percent_covered": percent}} for path, percent in percents.items()}}
    assert tool("low_coverage").low_files(report) == [("bare.py", 0.0), ("weak.py", 84.99)]

    command = [sys.executable, str(ROOT / "tools" / "low_coverage.py")]
    said = subprocess.run(command, input=json.dumps(report), capture_output=True, text=True, check=True).stdout
    assert said == "2 files are covered to less than 85 %:\n    0.0 %  bare.py\n   85.0 %  weak.py\n"
    said = subprocess.run(command, input='{"files": {}}', capture_output=True, text=True, check=True).stdout
    assert said == "No files are covered to less than 85 %.\n"


# Build


def test_requirements_bring_what_others_require_and_no_extra() -> None:
    closure = tool("check_build").requirement_closure
    lines = ["pytest>=8", "numpy>=1; extra == 'lab'", "nowhere; python_version < '3'"]
    alone = {package.name for package in closure(lines, set()).values()}
    assert {"pytest", "pluggy", "iniconfig"} <= alone
    assert "numpy" not in alone
    assert {package.name for package in closure(lines, {"lab"}).values()} == {*alone, "numpy"}


def test_a_wheel_without_its_data_files_is_refused(tmp_path: Path) -> None:
    import tarfile
    import zipfile

    check_build = tool("check_build")
    wheel, sdist = tmp_path / "arml-0-py3-none-any.whl", tmp_path / "arml-0.tar.gz"
    with tarfile.open(sdist, "w:gz") as archive:
        for name in check_build.IN_SDIST:
            archive.add(ROOT / name, f"arml-0/{name}")

    def make_wheel(names: list[str]) -> None:
        with zipfile.ZipFile(wheel, "w") as archive:
            for name in names:
                archive.writestr(name, "")

    inside = [f"arml/{name}" for name in check_build.IN_WHEEL]
    make_wheel(inside)
    check_build.check_contents(wheel, sdist)
    make_wheel(inside[1:])
    with pytest.raises(ValueError, match=re.escape("lacks ['py.typed']")):
        check_build.check_contents(wheel, sdist)
    make_wheel([*inside, "tests/conftest.py"])
    with pytest.raises(ValueError, match=re.escape("holds ['tests']")):
        check_build.check_contents(wheel, sdist)


def test_data_files_of_the_package_are_those_the_check_asks_for() -> None:
    package = ROOT / "src" / "arml"
    found = {str(path.relative_to(package)) for path in package.rglob("*") if path.is_file()}
    assert {name for name in found if not name.endswith((".py", ".pyc"))} == set(tool("check_build").IN_WHEEL)
