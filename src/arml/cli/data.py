"""``arml data``: list, fetch and check data sets."""

from rich.console import Console
from rich.table import Table

from arml.cli.options import Check, Fetch, List
from arml.lab.data import fetch


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
