"""Short words for the tasks that many worlds share, and for worlds of digits and of tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from arml.lab.worlds.image_worlds import ImageTask, make_digits
from arml.lab.worlds.table_worlds import TableTask, TableWorld, make_table
from arml.lab.worlds.world import Kind, Tier, World


def wrong_digits(*shifts: int, show: str = "plain", scale: float = 1.0) -> dict[str, ImageTask]:
    """One misleading source per shift s: it calls the digit y (y + s) mod 10."""
    return {f"wrong+{s}": ImageTask(show, shift=s, scale=scale) for s in shifts}


def random_digits(count: int) -> dict[str, ImageTask]:
    """Sources whose digits are drawn at random."""
    return {f"random{number}": ImageTask(asks="random") for number in range(1, 1 + count)}


def random_codes(count: int) -> dict[str, ImageTask]:
    """Pretext tasks on unlabelled images that ask for codes drawn at random."""
    return {f"code{number}": ImageTask(asks="code") for number in range(1, 1 + count)}


def coins(count: int) -> dict[str, TableTask]:
    """Questions that a coin has answered."""
    return {f"coin{number}": TableTask("coin") for number in range(1, 1 + count)}


def columns(*names: str) -> dict[str, TableTask]:
    """Real columns of a table."""
    return {name: TableTask("column", column=name) for name in names}


@dataclass(frozen=True)
class Recipes:
    """Makes the worlds of one tier."""

    tier: Tier

    def digits(
        self,
        name: str,
        kind: Kind,
        helpful: Mapping[str, ImageTask],
        others: Mapping[str, ImageTask],
        *,
        labels: int = 20,
        network: str = "",
        show: str = "plain",
        **settings: Any,
    ) -> World:
        """A world of digits; names that end in ``mlp`` have a perceptron, others a convolutional network.

        ``show`` is how the main task shows its images.
        """
        is_flat = name.endswith("mlp")
        make = partial(make_digits, {**helpful, **others}, self.tier, is_flat, labels, show=show)
        network = network or ("mlp-64" if is_flat else "plain-32")
        return World(
            name, self.tier, kind, tuple(helpful), tuple(others), make, network=network, labels=labels, **settings
        )

    def table(
        self,
        name: str,
        kind: Kind,
        table: TableWorld,
        helpful: Mapping[str, TableTask],
        others: Mapping[str, TableTask],
        *,
        labels: int = 20,
        **settings: Any,
    ) -> World:
        """A world of a table."""
        make = partial(make_table, table, {**helpful, **others}, labels)
        return World(name, self.tier, kind, tuple(helpful), tuple(others), make, labels=labels, **settings)
