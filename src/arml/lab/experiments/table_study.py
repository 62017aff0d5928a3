"""Every target of every table as the main one in turn: how often does each weighting help? And a table of texts."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from arml.lab.data.docstrings import write_docstrings
from arml.lab.data.table import column_names
from arml.lab.experiments.artefact import Artefact, Part
from arml.lab.experiments.multi_label_runs import Table, cpu
from arml.lab.run import MethodName

LABELS = (20, 50, 100)
METHODS: tuple[MethodName, ...] = ("uniform", "arml", "agreement")
SUFFIXES = (".csv", ".tsv", ".parquet")
SECONDS = {"main_only": 1.6, "": 3.2}
"""Seconds of one core per run by learner, timed on twelve tables (AMD EPYC, torch 2.13)."""
TEXT_LABELS = (50, 100, 200)
TEXT_SECONDS = {"main_only": 1.5, "joint": 4.0, "": 2.0}
"""Likewise, for text."""
SPECIFICATION = "targets.toml"
"""A file in the folder that names the targets of further tables: ``flowers = ["petals", "colour"]``."""


@dataclass(frozen=True)
class Targets:
    """The targets of a table."""

    mains: tuple[str, ...] = ()
    """Each is the main target in turn; the others are auxiliary ones."""
    first: int = 0
    """If no target is named: this many columns at the beginning of the file,"""
    last: int = 0
    """or at its end."""
    aux: tuple[str, ...] = ()
    """Targets that are auxiliary ones only."""
    numbers: bool = False
    """Whether all are numbers, however few different values they have."""


KNOWN: dict[str, Targets] = {
    "tox21": Targets(first=12),
    "emotions": Targets(last=6),
    "atp1d": Targets(last=6),
    "oes97": Targets(last=16),
    "osales": Targets(tuple(f"Outcome_M{month}" for month in range(1, 13)), numbers=True),
    "enb": Targets(("Y1", "Y2")),
    "edm": Targets(("DFlow", "DGap")),
    # 36 of 1 066 regions have an m-class flare and 5 an x-class one: 20 labels are often all 0.
    "sf2": Targets(("c-class",), aux=("m-class", "x-class"), numbers=True),
}
"""Public tables with several targets (Mulan, Tox21), by the name of the file."""
EMBEDDED: dict[str, Targets] = {
    "wine": Targets(("target", "proline", "color_intensity", "flavanoids")),
    "diabetes": Targets(("target", "bmi", "bp", "s5")),
    "breast_cancer": Targets(("target", "mean area", "worst concave points", "mean texture")),
    "iris": Targets(("target", "petal width (cm)")),
}
"""Tables that ship with scikit-learn: their class or number, and measurements that one could wish to predict."""


def write_embedded(name: str, folder: Path) -> Path:
    """The table ``name`` of scikit-learn as a file in ``folder``."""
    from sklearn import datasets

    path = folder / f"{name}.csv"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        getattr(datasets, f"load_{name}")(as_frame=True).frame.to_csv(path, index=False)
    return path


def find_tables(folder: Path | None, out: Path) -> dict[Path, Targets]:
    """The tables of scikit-learn, and those in ``folder`` whose targets are known.

    Raises:
        ValueError: If the targets of a table in ``folder`` are unknown.
    """
    found = {write_embedded(name, out / "tables"): targets for name, targets in EMBEDDED.items()}
    if folder is None:
        return found
    known: dict[str, Targets] = {**KNOWN, **_read_specification(folder / SPECIFICATION)}
    for path in sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES):
        if path.stem not in known:
            raise ValueError(
                f"The targets of {path} are unknown. Name them in {folder / SPECIFICATION}, in a line such as "
                f'{path.stem} = ["a", "b"].'
            )
        found[path] = known[path.stem]
    return found


def _read_specification(path: Path) -> dict[str, Targets]:
    if not path.exists():
        return {}
    named: Mapping[str, Any] = tomllib.loads(path.read_text())
    for name, targets in named.items():
        if not isinstance(targets, list) or len(targets) < 2 or not all(isinstance(one, str) for one in targets):
            raise ValueError(f"{path}: {name} should be a list of two or more names of columns. Got {targets!r}.")
    return {name: Targets(tuple(targets)) for name, targets in named.items()}


def make_parts(tables: Mapping[Path, Targets]) -> Sequence[Part]:
    """A comparison for each table: main task only, uniform weights, ARML and the recommended weighting."""
    return [Part(_base(path, targets), _table(path, targets), SECONDS) for path, targets in tables.items()]


def _mains(path: Path, targets: Targets) -> tuple[str, ...]:
    if targets.mains:
        return targets.mains
    columns = column_names(path)
    return columns[: targets.first] if targets.first else columns[-targets.last :]


def _base(path: Path, targets: Targets) -> Any:
    mains = _mains(path, targets)
    numbers = (*mains, *targets.aux) if targets.numbers else ()
    aux = (*mains[1:], *targets.aux)
    return replace(cpu("table"), table=str(path), main=mains[0], aux=aux, as_numbers=numbers)


def _table(path: Path, targets: Targets) -> Table:
    return Table(_quoted(_mains(path, targets)), label_counts=LABELS, methods=METHODS, simple=False)


def text_study(out: Path) -> Artefact:
    """Texts as data: the table of :mod:`arml.lab.data.docstrings`, which is written below ``out``."""
    path = out / "tables" / "docstrings.csv"
    words = write_docstrings(path)
    base = replace(cpu("table"), table=str(path), main="part", aux=words)
    table = Table(label_counts=TEXT_LABELS, methods=METHODS)
    return Artefact(
        "Text: parts of SciPy, told by descriptions of their functions",
        "Does it help to know which words the rest of the documentation mentions?",
        {"cpu": lambda: [Part(base, table, TEXT_SECONDS)]},
        {"cpu": ("the paper has no texts",)},
        {"cpu": 5},
    )


def _quoted(names: Sequence[str]) -> tuple[str, ...]:
    """Names with commas, as the command line takes them."""
    return tuple(f'"{name}"' if "," in name else name for name in names)


def table_study(folder: Path | None, out: Path) -> Artefact:
    """The study on the tables of scikit-learn and those in ``folder``; files are written below ``out``."""
    return Artefact(
        "Tables: every target as the main one in turn, 20, 50 and 100 labels",
        "How often, and by how much, does each weighting beat the main task alone and uniform weights?",
        {"cpu": partial(make_parts, find_tables(folder, out))},
        {"cpu": ("the paper has no tables of numbers",)},
        {"cpu": 5},
    )
