"""Data and learner of a run in a world of the suite."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from arml.lab.build.fingerprints import file_fingerprint, folder_fingerprint
from arml.lab.build.skeleton import Contribution, Folders, seed_stream
from arml.lab.catalogue import choose
from arml.lab.data.cache import ReportCount
from arml.lab.data.domain_set import load_folders
from arml.lab.data.table import load as load_table
from arml.lab.learners.world_tasks import MAIN, WorldTasks
from arml.lab.metrics import metrics
from arml.lab.models.network import Network
from arml.lab.run_kinds import Suite
from arml.lab.train import Evaluate, Metrics, send
from arml.lab.worlds import WORLDS
from arml.lab.worlds.own_worlds import folder_worlds, table_worlds
from arml.lab.worlds.world import MainExamples, World, WorldData, WorldTask
from arml.lab.worlds.world_batches import WorldBatch, WorldBatches

IMAGE_SIZE = 16
"""Height and width of a user's own images, in pixels."""
LEARNERS: dict[str, Callable[[WorldData, Sequence[str]], dict[str, WorldTask]]] = {
    "main_only": lambda data, helpful: {},
    "oracle": lambda data, helpful: {name: data.aux[name].in_natural_units() for name in helpful},
    "joint": lambda data, helpful: data.aux,
}
"""The auxiliary tasks that a learner uses; the oracle takes those that help, in natural units."""


def find_worlds(table: str, folders: str, main: str, aux: Sequence[str], cache: Path) -> dict[str, World]:
    """The worlds by name: those of a user's own table or folders if one is given, else the embedded ones."""
    if table and folders:
        raise ValueError("Worlds are made from a table or from folders. Give one of them.")
    if (table or folders) and not main:
        raise ValueError("Worlds of your own need --main: the main column of the table, or the target domain.")
    if table:
        own = table_worlds(load_table(Path(table), main=main, aux=aux), main, aux)
    elif folders:
        own = folder_worlds(load_folders(Path(folders), cache, size=IMAGE_SIZE), main)
    else:
        return WORLDS
    return {world.name: world for world in own}


def load(run: Suite, folders: Folders, count: ReportCount) -> WorldData:
    """Makes the data of the world for the run's seed."""
    del count
    worlds = find_worlds(run.table, run.folders, run.main, run.aux, folders.cache)
    return choose(worlds, run.world, "world").make(run.seed)


def contribute(run: Suite, data: WorldData) -> Contribution[WorldBatch]:
    """Makes the learner and its batches. Every learner has the same labels, main batches and initial trunk."""
    aux = choose(LEARNERS, run.learner, "learner")(data, run.helpful)
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


def _evaluate_on(main: WorldTask, examples: MainExamples) -> Evaluate:
    def evaluate(network: Network) -> Metrics:
        with torch.no_grad():
            outputs: Tensor = network(send(lambda x: x, examples.x, network))
        return metrics(main.target, outputs, examples.y)

    return evaluate


def complete(run: Suite) -> Suite:
    """Adds fingerprints of the files that the run reads, and equal weights where no method weights anything."""
    data_digest = file_fingerprint(run.table) or folder_fingerprint(run.folders)
    run = replace(run, data_digest=data_digest, method_digest=file_fingerprint(run.method_file))
    return run if run.learner in run.weighted else replace(run, method="uniform", method_file="", method_digest="")
