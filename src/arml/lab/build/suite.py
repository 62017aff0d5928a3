"""Data and learner of a run in a world of the suite."""

from dataclasses import replace

import torch
from torch import Tensor

from arml.lab.build.skeleton import Contribution, Folders, seed_stream
from arml.lab.catalogue import choose
from arml.lab.data.cache import ReportCount
from arml.lab.learners.world_tasks import MAIN, WorldTasks
from arml.lab.metrics import metrics
from arml.lab.models.network import Network
from arml.lab.run_kinds import Suite
from arml.lab.train import Evaluate, Metrics
from arml.lab.worlds import WORLDS
from arml.lab.worlds.world import MainExamples, World, WorldData, WorldTask
from arml.lab.worlds.world_batches import WorldBatch, WorldBatches


def find_world(run: Suite) -> World:
    """The world of a run."""
    return choose(WORLDS, run.world, "world")


def load(run: Suite, folders: Folders, count: ReportCount) -> WorldData:
    """Makes the data of the world for the run's seed."""
    del folders, count
    return find_world(run).make(run.seed)


def contribute(run: Suite, data: WorldData) -> Contribution[WorldBatch]:
    """Makes the learner and its batches. Every learner has the same labels, main batches and initial trunk."""
    aux = choose_tasks(run, data)
    order, network_seed, draw_seed = (seed_stream(run.seed, number) for number in range(1, 4))
    sizes = {MAIN: run.batch_main, **dict.fromkeys(aux, run.batch_aux)}
    return Contribution(
        learner=WorldTasks(data.main, aux),
        batches=WorldBatches({MAIN: data.main, **aux}, sizes, order),
        example=data.main.x.shape[1:],
        num_outputs=data.main.target.num_outputs,
        num_examples=len(data.main.x) + sum(len(task.x) for task in aux.values()),
        lr=0.003,
        network_seed=network_seed,
        draw_seed=draw_seed,
        validation=_evaluate_on(data.main, data.validation),
        test=_evaluate_on(data.main, data.test),
        score=None,
    )


def choose_tasks(run: Suite, data: WorldData) -> dict[str, WorldTask]:
    """The auxiliary tasks that the run's learner uses; the oracle takes those that help, in natural units."""
    if run.learner == "main_only":
        return {}
    if run.learner == "oracle":
        return {name: data.aux[name].in_natural_units() for name in run.helpful}
    return data.aux


def _evaluate_on(main: WorldTask, examples: MainExamples) -> Evaluate:
    def evaluate(network: Network) -> Metrics:
        with torch.no_grad():
            outputs: Tensor = network(examples.x)
        return metrics(main.target, outputs, examples.y)

    return evaluate


def complete(run: Suite) -> Suite:
    """Fills in the truth about the world, and equal weights where no method weights anything."""
    world = find_world(run)
    run = replace(run, tier=world.tier, kind=world.kind, helpful=world.helpful)
    return run if run.learner in run.weighted else replace(run, method="uniform")
