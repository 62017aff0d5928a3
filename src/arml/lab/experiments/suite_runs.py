"""The runs of the suite: every method in every world, with the main task alone, and the oracle."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from arml.lab.catalogue import METHODS
from arml.lab.run_kinds import Suite
from arml.lab.worlds.world import World

FIRST_SEED = {"dev": 0, "test": 2000, "own": 0}
"""Seeds of the two tiers do not meet."""
QUICK = (
    "digits-one-helps-mlp",
    "digits-three-help-two-mislead-mlp",
    "digits-five-random-mlp",
    "digits-loss-scales-mlp",
    "tumours-twin-and-coin",
    "diabetes-one-helps-one-misleads",
)
"""Fast worlds of ``dev``."""
QUICK_SEEDS = 3


def world_run(world: World, **changes: Any) -> Suite:
    """A run in ``world`` with the world's own settings, except for ``changes``."""
    run = Suite(
        world=world.name,
        tier=world.tier,
        kind=world.kind,
        helpful=world.helpful,
        network=world.network,
        steps=world.steps,
        labels=world.labels,
        batch_main=world.batch_main,
        batch_aux=world.batch_aux,
        evaluate_every=world.steps,
        record_every=max(1, world.steps // 10),
        checkpoint_every=world.steps,
    )
    return replace(run, **changes)


def runs(
    worlds: Sequence[World],
    *,
    seeds: int,
    methods: Sequence[str] = tuple(METHODS),
    method_files: Sequence[str] = (),
    **changes: Any,
) -> list[Suite]:
    """All runs, seed by seed, so that a first table is complete early.

    Where no task helps the oracle is the main task alone, which is run in any case. A real world has no oracle.

    Args:
        worlds: where to run.
        seeds: number of seeds; they begin at 0, and at 1000 for worlds of ``test``.
        methods: methods of the catalogue; uniform weights are always among the runs.
        method_files: files with further methods.
        changes: fields that all runs share, such as ``steps``.
    """
    lines: list[dict[str, Any]] = [{"learner": "main_only", "method": "uniform"}]
    lines += [{"learner": "oracle", "method": "uniform"}]
    lines += [{"method": method} for method in dict.fromkeys(["uniform", *methods])]
    lines += [{"method": method_name(file), "method_file": file} for file in method_files]
    return [
        world_run(world, seed=FIRST_SEED[world.tier] + number, **line, **changes)
        for number in range(seeds)
        for world in worlds
        for line in lines
        if line.get("learner") != "oracle" or world.helpful
    ]


def method_name(file: str) -> str:
    """The name of the method in ``file``: the file's own, without its ending.

    >>> method_name("methods/my_method.py")
    'my_method'
    """
    return Path(file).stem
