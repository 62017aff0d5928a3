"""The main task of a world with all, some or none of its auxiliary tasks."""

from collections.abc import Mapping

import torch
from torch import Tensor

from arml.lab.learners.base import Learner
from arml.lab.models.network import Network
from arml.lab.worlds.world import WorldTask
from arml.lab.worlds.world_batches import WorldBatch

MAIN = "main"
"""The main task's name in batches."""


class WorldTasks(Learner[WorldBatch]):
    """One pass over the examples of all tasks, then one loss per task, as a rule from the head it names."""

    def __init__(self, main: WorldTask, aux: Mapping[str, WorldTask]) -> None:
        self.all = {MAIN: main, **aux}
        self.tasks: tuple[str, ...] = tuple(aux)
        self.heads: dict[str, int] = {
            task.head: task.target.num_outputs for task in aux.values() if task.head != "class"
        }

    def losses(
        self, network: Network, batch: WorldBatch, step: int, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The main loss, and the losses of all auxiliary tasks."""
        del step, generator
        features = network.features(torch.cat([batch.x[name] for name in self.all]))
        parts = dict(zip(self.all, features.split([len(batch.x[name]) for name in self.all]), strict=True))
        losses = {name: task.loss_of_features(network, parts[name], batch.y[name]) for name, task in self.all.items()}
        return losses.pop(MAIN), losses
