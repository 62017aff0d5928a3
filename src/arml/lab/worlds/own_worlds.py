"""Worlds from a user's own table or folders of images: their tasks as they are, and tasks of which the truth is known.

Of a table: its columns as they are, the columns together with as many coins, the main answer with noise beside a wrong
answer and a coin, and a twin of the main answer in other units beside a coin. Of folders: the sources as they are, the
sources together with copies that have wrong classes, and images of the target with the right class beside wrong
ones.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor

from arml.lab.data.domain_set import Domain, DomainSet
from arml.lab.data.targets import Examples, Target
from arml.lab.worlds.division import Division, divide_pool
from arml.lab.worlds.table_worlds import TableTask, answer_task, standardise_values
from arml.lab.worlds.world import Kind, MainExamples, World, WorldData, WorldTask

DomainTasks: TypeAlias = Mapping[str, tuple[str, int]]
"""The domain of every task, and the shift s of its classes: the class y becomes (y + s) mod C."""
LABELS = 20
"""Labelled examples of the main task, or one per class if there are more classes."""
TESTED, VALIDATION = 0.4, 0.1
"""Shares of the rows."""


def table_worlds(examples: Examples, main: str, aux: Sequence[str]) -> list[World]:
    """The worlds of a table; ``examples`` has the targets ``main`` and ``aux``."""
    unnamed = [name for name in (main, *aux) if name not in examples.targets]
    if unnamed or not aux:
        raise ValueError(f"Worlds of a table need a main column and auxiliary ones. Got {main!r} and {list(aux)}.")
    columns = {name: TableTask("column", column=name) for name in aux}
    tossed = {f"coin{number}": TableTask("coin") for number in range(1, 1 + len(aux))}
    good, wrong, coin = {"noisy labels": TableTask("main", noise=0.2)}, {"wrong": TableTask("wrong")}, TableTask("coin")
    twin = {"twin": TableTask("twin", noise=0.3, unit=100.0, natural_unit=10.0)}
    labels = max(LABELS, len(examples.targets[main].classes))

    def world(name: str, kind: Kind, helpful: Mapping[str, TableTask], others: Mapping[str, TableTask]) -> World:
        make = partial(_make_table, examples, main, {**helpful, **others}, labels)
        title = f"{examples.name}-{main}-{name}"
        return World(title, "own", kind, tuple(helpful), tuple(others), make, labels=labels)

    return [
        world("columns", "real", {}, columns),
        world("columns-and-coins", "real", {}, {**columns, **tossed}),
        world("one-helps-two-do-not", "some mislead", good, {**wrong, "coin": coin}),
        world("twin-and-coin", "other units", twin, {"coin": coin}),
    ]


def _make_table(examples: Examples, main: str, tasks: Mapping[str, TableTask], labels: int, seed: int) -> WorldData:
    target = examples.targets[main]
    rows = target.present.nonzero().flatten()
    parts = _divide(target.values[rows], len(target.classes), labels, seed)
    few, validation, test, rest = (rows[part] for part in parts)
    known = torch.cat([few, rest])
    x = examples.inputs(known)
    y = target.values.float() if target.classes else standardise_values(target.values, few).float()

    def task(name: str, asked: TableTask) -> WorldTask:
        own = _own_column(examples.targets[asked.column], known) if asked.asks == "column" else None
        used = known if own is None else known[own.present]
        answers = answer_task(name, asked, y[known], target.classes, seed) if own is None else _drop_missing(own)
        head = "class" if asked.asks in ("main", "wrong") else name
        return WorldTask(x[used], answers, head, asked.unit, asked.natural_unit, asked.scale)

    return WorldData(
        WorldTask(x[few], Target(y[few], target.classes), "class"),
        {name: task(name, asked) for name, asked in tasks.items()},
        MainExamples(x[validation], y[validation]),
        MainExamples(x[test], y[test]),
    )


def _own_column(target: Target, rows: Tensor) -> Target:
    """A column on ``rows``; a number is standardised on those that have one."""
    values = target.values[rows]
    if target.is_numeric:
        return Target(standardise_values(values, (~values.isnan()).nonzero().flatten()).float())
    return Target(values.float(), target.classes)


def _drop_missing(target: Target) -> Target:
    return Target(target.values[target.present], target.classes)


def folder_worlds(domains: DomainSet, target: str) -> list[World]:
    """The worlds of images in several domains, of which ``target`` is the main task."""
    if target not in domains.domains:
        raise ValueError(f"{domains.name} has no domain {target!r}. It has: {', '.join(domains.domains)}.")
    sources = {name: (name, 0) for name in domains.domains if name != target}
    count = len(domains.classes)
    wrong = {f"{name} wrong": (name, 1 + number % (count - 1)) for number, name in enumerate(sources)}
    labels = max(LABELS, count)

    def world(name: str, kind: Kind, helpful: DomainTasks, others: DomainTasks) -> World:
        make = partial(_make_folders, domains, target, {**helpful, **others}, labels)
        title, network = f"{domains.name}-{target}-{name}", "plain-32"
        return World(title, "own", kind, tuple(helpful), tuple(others), make, network, labels=labels)

    return [
        world("sources", "real", {}, sources),
        world("sources-and-wrong-copies", "real", {}, {**sources, **wrong}),
        world("one-helps-others-mislead", "some mislead", {"same": (target, 0)}, wrong),
    ]


def _make_folders(domains: DomainSet, target: str, tasks: DomainTasks, labels: int, seed: int) -> WorldData:
    main, count = domains.domains[target], len(domains.classes)
    parts = _divide(main.y, count, labels, seed)

    def examples(domain: Domain, rows: Tensor, shift: int = 0) -> MainExamples:
        return MainExamples(domain.x[rows].float() / 127.5 - 1, ((domain.y[rows] + shift) % count).float())

    def task(domain: Domain, rows: Tensor, shift: int = 0) -> WorldTask:
        x, y = examples(domain, rows, shift)
        return WorldTask(x, Target(y, domains.classes), "class")

    aux = {}
    for name, (source, shift) in tasks.items():
        domain = domains.domains[source]
        rows = parts.rest if source == target else torch.arange(len(domain.y))
        aux[name] = task(domain, rows, shift)
    few = task(main, parts.few)
    return WorldData(few, aux, examples(main, parts.validation), examples(main, parts.test))


def _divide(y: Tensor, num_classes: int, labels: int, seed: int) -> Division:
    validation, test = round(VALIDATION * len(y)), round(TESTED * len(y))
    if labels + validation + test >= len(y):
        raise ValueError(
            f"There are {len(y)} examples with a main label. A world needs {labels} for learning, half of all for "
            "testing, and some for auxiliary tasks. Give more examples."
        )
    return divide_pool(y, num_classes, labels=labels, validation=validation, test=test, seed=seed)
