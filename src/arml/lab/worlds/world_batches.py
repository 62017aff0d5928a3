"""Batches of a world: every task draws its own examples."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from arml.lab.data.batches import Batches, Sampler
from arml.lab.data.draws import take_part
from arml.lab.worlds.division import generator_for
from arml.lab.worlds.world import WorldTask


class WorldBatch(NamedTuple):
    """The examples of one step by task, the main task's first, and their answers."""

    x: dict[str, Tensor]
    y: dict[str, Tensor]


class WorldBatches(Batches[WorldBatch]):
    """One sampler per task. Its order depends on the seed and the task's name alone.

    So the main task sees the same batches whatever the auxiliary tasks are, and so does every auxiliary task.
    """

    def __init__(self, tasks: Mapping[str, WorldTask], batch_sizes: Mapping[str, int], seed: int) -> None:
        self.tasks = dict(tasks)
        self.samplers: dict[str, Sampler] = {
            name: Sampler(
                torch.arange(len(task.x)), batch_sizes[name], generator_for(seed, f"order {name}").initial_seed()
            )
            for name, task in tasks.items()
        }

    def next(self) -> WorldBatch:
        """The examples of the next step."""
        rows = {name: take_part(sampler.next()) for name, sampler in self.samplers.items()}

        def fetch(values: Tensor, chosen: Tensor) -> Tensor:
            return self.placement.inputs(self.placement.rows(values, chosen))

        return WorldBatch(
            {name: fetch(self.tasks[name].x, chosen) for name, chosen in rows.items()},
            {name: fetch(self.tasks[name].target.values, chosen) for name, chosen in rows.items()},
        )
