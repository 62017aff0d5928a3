"""Worlds of tables. The main task is to answer one question about a row from few labels.

Auxiliary tasks see the rows without a main label. Which of them help is known, except for real columns:

- the main answer with a share of labels drawn at random, answered by the main task's own head, helps; so does a
  number with noise;
- a twin, the main answer as a number with noise, in any units, helps;
- the wrong answer, (y + s) mod C or -y for a standardised number, answered by the main task's own head, misleads;
- a coin is noise;
- a real column, removed from the inputs, is a real auxiliary task: nobody knows whether it helps.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from arml.lab.data.targets import Target
from arml.lab.worlds.division import divide_pool, generator_for
from arml.lab.worlds.pools import TablePool
from arml.lab.worlds.world import MainExamples, WorldData, WorldTask


@dataclass(frozen=True)
class TableTask:
    """What an auxiliary task asks about a row."""

    asks: Literal["main", "twin", "wrong", "coin", "column"]
    noise: float = 0.0
    """``main``: share of labels drawn at random; numbers: standard deviation of the noise, the answer's being 1."""
    column: str = ""
    shift: int = 1
    """``wrong``: s."""
    unit: float = 1.0
    natural_unit: float = 1.0
    scale: float = 1.0


@dataclass(frozen=True)
class TableWorld:
    """The rows of a world, and which of them are used for what."""

    load: Callable[[], TablePool]
    inputs: tuple[str, ...] = ()
    """Columns to learn from; none: all that no task asks for."""
    tested: int = 200
    validation: int = 50


def make_table(world: TableWorld, tasks: Mapping[str, TableTask], labels: int, seed: int) -> WorldData:
    """The data of a world for one seed."""
    pool = world.load()
    parts = divide_pool(
        pool.y, len(pool.classes), labels=labels, validation=world.validation, test=world.tested, seed=seed
    )
    known = torch.cat([parts.few, parts.rest])
    asked = {task.column for task in tasks.values() if task.asks == "column"}
    names = world.inputs or [name for name in pool.columns if name not in asked]
    x = torch.stack([standardise_values(pool.columns[name], known) for name in names], dim=1).float()
    y = (pool.y if pool.classes else standardise_values(pool.y, parts.few)).float()

    def ask(name: str, task: TableTask) -> Target:
        if task.asks == "column":
            return _column(pool.columns[task.column][known])
        return answer_task(name, task, y[known], pool.classes, seed)

    return WorldData(
        main=WorldTask(x[parts.few], Target(y[parts.few], pool.classes), "class"),
        aux={
            name: WorldTask(x[known], ask(name, task), _head(name, task), task.unit, task.natural_unit, task.scale)
            for name, task in tasks.items()
        },
        validation=MainExamples(x[parts.validation], y[parts.validation]),
        test=MainExamples(x[parts.test], y[parts.test]),
    )


def _head(name: str, task: TableTask) -> str:
    return "class" if task.asks in ("main", "wrong") else name


def answer_task(name: str, task: TableTask, own: Tensor, classes: tuple[str, ...], seed: int) -> Target:
    """The answers of a task that is not a column, made from the main answers ``own``."""
    generator = generator_for(seed, f"task {name.removesuffix(' again')}")
    if task.asks == "twin":
        noise = task.noise * torch.randn(own.shape, generator=generator)
        return Target(standardise_values(standardise_values(own) + noise))
    if task.asks == "coin":
        return Target(torch.randint(2, own.shape, generator=generator).float(), ("heads", "tails"))
    if not classes:
        return Target(-own if task.asks == "wrong" else own + task.noise * torch.randn(own.shape, generator=generator))
    if task.asks == "wrong":
        return Target((own + task.shift) % len(classes), classes)
    guessed = torch.randint(len(classes), own.shape, generator=generator)
    wrong = torch.rand(own.shape, generator=generator) < task.noise
    return Target(torch.where(wrong, guessed, own), classes)


def _column(values: Tensor) -> Target:
    """A measured column: a class of two if it has two values, else a number."""
    if len(values.unique()) == 2:
        return Target((values == values.max()).float(), ("low", "high"))
    return Target(standardise_values(values).float())


def standardise_values(values: Tensor, rows: Tensor | None = None) -> Tensor:
    """Mean 0 and variance 1 over ``rows``; a constant column becomes 0."""
    seen = values if rows is None else values[rows]
    return (values - seen.mean()) / seen.std(correction=0).clamp(min=1e-12)
