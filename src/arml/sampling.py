"""Which data to draw: batches from sources, in proportion to the learned weights."""

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch.distributed as dist
from torch.utils.data import Sampler

from arml.reweighter import Reweighter
from arml.schedule import check_whole

Rows: TypeAlias = Sequence[int]
"""Rows of one data set; a ``range`` takes no memory."""
Weights: TypeAlias = Reweighter | Callable[[], Mapping[str, float]] | None
CHOICE, MAIN, SOURCES = range(3)
"""Streams of random numbers: which source is drawn, the order of the main rows, and from here on one per source."""


class SourceSampler(Sampler[list[int]]):
    r"""Draws every batch from one source, so that a step costs the same for any number of sources.

    .. math:: p_k = (1 - \epsilon) \frac{w_k}{\sum_j w_j} + \frac{\epsilon}{K}

    is the probability of source k, with the weights w in force when the batch is drawn. It is a batch sampler of
    torch: each item is a list of rows.

    >>> sampler = SourceSampler({"news": range(4), "code": range(4, 6)}, batch_size=2, num_batches=3)
    >>> for rows in sampler:
    ...     print(sampler.source, rows)
    code [4, 5]
    news [2, 1]
    code [4, 5]

    A source gives its rows in a new random order each time it has been through. Draws depend on ``seed``, the number of
    the batch and the weights alone, and are the same on all processes; each takes its part of the rows.
    """

    def __init__(
        self,
        sources: Mapping[str, Rows],
        batch_size: int,
        weights: Weights = None,
        *,
        num_batches: int | None = None,
        main: Rows | None = None,
        explore: float = 0.0,
        correct: bool = True,
        seed: int = 0,
        rank: int | None = None,
        num_replicas: int | None = None,
    ) -> None:
        """Draws nothing before the first batch is taken.

        Args:
            sources: the rows of every source, by the name of its task.
            batch_size: rows per batch and process.
            weights: a Reweighter, or a function that returns a weight per source; ``None``: all sources alike.
            num_batches: batches per pass through the sampler; ``None``: endless.
            main: rows of the main task; every batch then begins with ``batch_size`` of them.
            explore: epsilon, the share of batches that are drawn from all sources alike.
            correct: what a drawn source counts: ``True``: its weight over its probability, so that the joint loss is on
                average that of all sources; ``False``: the sum of all weights, whichever source it is.
            seed: seeds the choice of sources and the order of their rows.
            rank: this process's number; ``None``: as ``torch.distributed`` has it.
            num_replicas: the number of processes; ``None``: as ``torch.distributed`` has it.
        """
        check_sources(sources if main is None else {**sources, "main": main})
        check_whole("`batch_size`", batch_size)
        if num_batches is not None:
            check_whole("`num_batches`", num_batches)
        if not 0 <= explore <= 1:
            raise ValueError(f"`explore` should be a share between 0 and 1. Got {explore!r}.")
        self.names, self.batch_size, self.num_batches = tuple(sources), batch_size, num_batches
        self.explore, self.correct, self.seed = explore, correct, seed
        self._read_weights = make_reader(weights, self.names)
        self._orders = [Order(rows, (seed, SOURCES + i)) for i, rows in enumerate(sources.values())]
        self._main = None if main is None else Order(main, (seed, MAIN))
        self._rank, self._num_replicas = rank, num_replicas
        self._restart([0] * len(self.names), [])

    def _restart(self, given: list[int], ahead: list[int]) -> None:
        """Goes on after sources have ``given`` so many batches; the first draws are ``ahead``."""
        self._begin, self._given, self._ahead, self._drawn = given, [*given], ahead, array("L")
        self._probabilities = self.probabilities()

    def __len__(self) -> int:
        """Batches per pass."""
        if self.num_batches is None:
            raise TypeError("This SourceSampler is endless. Give `num_batches` for passes that have a length.")
        return self.num_batches

    def __iter__(self) -> Iterator[list[int]]:
        """Batches of rows; the next pass goes on where this one ends."""
        left = self.num_batches
        while left is None or left > 0:
            yield self.draw()
            left = None if left is None else left - 1

    @property
    def source(self) -> str:
        """The source of the last batch: of the one in hand, unless a loader with workers draws ahead."""
        if not self._drawn:
            raise ValueError("No batch has been drawn yet, so there is no source. Take a batch first.")
        return self.names[self._drawn[-1]]

    def draw(self) -> list[int]:
        """The rows of the next batch, as far as they are for this process."""
        number = sum(self._given)
        chosen = self._ahead.pop(0) if self._ahead else self._choose(number)
        rows = self._take(self._orders[chosen], self._given[chosen])
        self._given[chosen] += 1
        self._drawn.append(chosen)
        return rows if self._main is None else self._take(self._main, number) + rows

    def _take(self, order: "Order", batch: int) -> list[int]:
        """The rows of batch number ``batch`` that are for this process."""
        rank, num_replicas = self._find_place()
        size = self.batch_size * num_replicas
        return order.take(batch * size, size)[rank::num_replicas]

    def probabilities(self) -> dict[str, float]:
        """The probability with which each source is drawn next; all alike where all weights are 0."""
        weights = self._read_weights()
        total, num = sum(weights.values()), len(weights)
        shares = {name: w / total if total > 0 else 1 / num for name, w in weights.items()}
        return {name: (1 - self.explore) * share + self.explore / num for name, share in shares.items()}

    def counts(self, source: str) -> dict[str, float]:
        """What ``source``, once drawn, counts in the joint loss: ``reweighter(main, aux, counts=...)`` takes it."""
        weights = self._read_weights()
        if source not in weights:
            raise ValueError(f"Unknown source {source!r}. Known: {', '.join(weights)}.")
        drawn_with = self._probabilities[source]
        return {source: weights[source] / drawn_with if self.correct and drawn_with > 0 else sum(weights.values())}

    def state_dict(self, taken: int | None = None) -> dict[str, Any]:
        """What the next batches depend on, besides the weights.

        Args:
            taken: the batches that the loop has taken from the sampler since it was made or loaded. The others, which a
                loader with workers has drawn ahead, are drawn again. ``None``: all batches were taken.
        """
        taken = len(self._drawn) if taken is None else taken
        ahead = [*self._drawn[taken:], *self._ahead]
        return {"sources": list(self.names), "given": self._given_after(taken), "ahead": ahead, "seed": self.seed}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where ``state`` was made."""
        if list(state["sources"]) != list(self.names) or state["seed"] != self.seed:
            raise ValueError(
                f"The saved sampler has the sources {state['sources']} and seed {state['seed']}; this one has "
                f"{list(self.names)} and seed {self.seed}. Make it with the same ones."
            )
        self._restart(list(state["given"]), list(state["ahead"]))

    def _choose(self, number: int) -> int:
        """The number of the source of batch ``number``."""
        self._probabilities = self.probabilities()
        limits = np.cumsum(list(self._probabilities.values()))
        drawn = limits[-1] * np.random.default_rng([self.seed, CHOICE, number]).random()
        return int(np.searchsorted(limits, drawn, side="right"))

    def _given_after(self, taken: int) -> list[int]:
        """How many batches each source had given after ``taken`` draws."""
        first = self._drawn[:taken].tolist()
        return [begin + first.count(i) for i, begin in enumerate(self._begin)]

    def _find_place(self) -> tuple[int, int]:
        """This process's number, and the number of processes."""
        distributed = dist.is_available() and dist.is_initialized()
        rank = (dist.get_rank() if distributed else 0) if self._rank is None else self._rank
        num = (dist.get_world_size() if distributed else 1) if self._num_replicas is None else self._num_replicas
        return rank, num


class Order:
    """The rows of a source without end: in one random order after the other."""

    def __init__(self, rows: Rows, seed: tuple[int, int]) -> None:
        self._rows, self._seed = rows, seed
        self._kept: tuple[int, list[int]] = (-1, [])

    def take(self, start: int, num: int) -> list[int]:
        """``num`` rows from place ``start`` on."""
        length = len(self._rows)
        return [int(self._rows[self._order(place // length)[place % length]]) for place in range(start, start + num)]

    def _order(self, epoch: int) -> list[int]:
        if self._kept[0] != epoch:
            order = np.random.default_rng([*self._seed, epoch]).permutation(len(self._rows))
            self._kept = epoch, order.tolist()
        return self._kept[1]


def check_sources(sources: Mapping[str, Rows]) -> None:
    """Raises unless there are sources and each has rows."""
    empty = [name for name, rows in sources.items() if len(rows) == 0]
    if not sources or empty:
        given = f"no rows for {', '.join(map(repr, empty))}" if empty else repr(dict(sources))
        raise ValueError(
            f"`sources` should map names to rows of the data set, at least one each. Got {given}. Leave such a source "
            "out, and out of the `tasks` of the Reweighter."
        )


def make_reader(weights: Weights, names: Sequence[str]) -> Callable[[], dict[str, float]]:
    """A function that returns the present weight of every source."""
    if weights is None:
        return lambda: dict.fromkeys(names, 1.0)
    if isinstance(weights, Reweighter):
        reweighter = weights
        return make_reader(lambda: reweighter.weights, names)
    unknown = sorted(set(names) - set(weights()))
    if unknown:
        raise ValueError(
            f"There is no weight for the source {', '.join(map(repr, unknown))}. Known: {', '.join(weights())}. "
            "Use the names of tasks of the Reweighter."
        )
    read = weights

    def pick() -> dict[str, float]:
        found = read()
        return {name: float(found[name]) for name in names}

    return pick
