"""``arml data``: list, fetch and check data sets."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from arml.lab.data import fetch
from arml.lab.environment import data_folder


@dataclass(frozen=True)
class List:
    """List the data sets and where they are."""

    data_dir: Path = field(default_factory=data_folder)
    """Where data sets are. Default: the environment variable ARML_DATA, or data."""


@dataclass(frozen=True)
class Fetch:
    """Download a data set, check its checksums, and continue where an earlier attempt stopped."""

    name: Annotated[str, tyro.conf.Positional]
    """A data set such as cifar10 or celeba; `arml data list` shows all names."""
    data_dir: Path = field(default_factory=data_folder)
    """Where to put it. Default: the environment variable ARML_DATA, or data."""
    base_url: str | None = None
    """Another address to download the files from."""


@dataclass(frozen=True)
class Check:
    """Read a data set and say what is in it; with --cache, check the decoded images of earlier runs."""

    name: Annotated[str, tyro.conf.Positional] = ""
    """A data set such as cifar10 or celeba; `arml data list` shows all names."""
    data_dir: Path = field(default_factory=data_folder)
    """Where data sets are. Default: the environment variable ARML_DATA, or data."""
    cache: bool = False
    """Compare every block of the decoded images below --out with its checksum."""
    out: Path = Path("runs")
    """For --cache: where the folders of runs are."""


def run_list(command: List, console: Console) -> int:
    """Shows a table of all data sets."""
    table = Table("data set", "state", "where", "train", "test")
    for row in fetch.status(command.data_dir):
        counts = ["" if count is None else str(count) for count in (row.train, row.test)]
        table.add_row(row.name, row.state, row.where, *counts)
    console.print(table)
    return 0


def run_fetch(command: Fetch, console: Console) -> int:
    """Downloads what is missing."""
    row = fetch.fetch(command.name, command.data_dir, command.base_url)
    console.print(f"{row.name}: {row.state} in {row.where}, {row.train} training and {row.test} test examples")
    return 0


def run_check(command: Check, console: Console) -> int:
    """Reads the whole data set, all decoded images, or both."""
    if not command.name and not command.cache:
        raise ValueError("Name a data set, such as `arml data check digits`, or give --cache.")
    if command.name:
        console.print(fetch.check(command.name, command.data_dir))
    if command.cache:
        console.print(fetch.check_cache(command.out / "cache"), highlight=False, markup=False, soft_wrap=True)
    return 0
