"""The parts of a run with many targets."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from arml.cli.names import (
    choose,
    digest,
    noise_of,
    optimizer_of,
    preprocess_of,
    reweighter_of,
    start_from,
    stream,
    trunk_of,
)
from arml.lab.data import Augment, Sampler, celeba, table, yeast
from arml.lab.data.batches import AttributeBatch, AttributeBatches
from arml.lab.data.cache import ReportCount, report_nothing
from arml.lab.data.target_splits import FewLabels, few_labels
from arml.lab.data.targets import Examples, Target
from arml.lab.learners.base import AugmentExamples
from arml.lab.learners.joint_targets import JointTargets, MainTarget, no_augmentation
from arml.lab.metrics import metrics
from arml.lab.models.network import Network
from arml.lab.run import MultiLabel, separated
from arml.lab.tasks.attributes import Attributes
from arml.lab.train import Metrics, Parts, outputs_of

DATASETS: dict[str, Callable[[MultiLabel, Path, Path, ReportCount], Examples]] = {
    "yeast": lambda run, data_dir, cache, count: yeast.load(),
    "celeba": lambda run, data_dir, cache, count: celeba.load(data_dir, cache, size=run.image_size, progress=count),
    "table": lambda run, data_dir, cache, count: table.load(
        Path(run.table), main=_main_of(run), aux=run.aux, features=run.features
    ),
}


class Offered(NamedTuple):
    """What learners are made from."""

    main: Attributes
    others: dict[str, Target]
    rows: FewLabels
    augment: AugmentExamples


LEARNERS: dict[str, Callable[[Offered], MainTarget | JointTargets]] = {
    "main_only": lambda offered: MainTarget(offered.main, offered.augment),
    "joint": lambda offered: JointTargets(offered.main, Attributes(offered.others, offered.rows.aux), offered.augment),
}


def prepare(run: MultiLabel, data_dir: Path, cache: Path, count: ReportCount) -> None:
    """Reads the data set once: what is wrong with it shows before many runs begin, and images are decoded once."""
    examples = choose(DATASETS, run.dataset, "data set")(run, data_dir, cache, count)
    target, _ = _chosen(examples, run)
    few_labels(target, labels=run.labels, seed=stream(run.seed, 0), rows=examples.rows)


def build(run: MultiLabel, data_dir: Path, cache: Path) -> Parts[AttributeBatch]:
    """Everything ``run`` trains with. The seed decides all draws, each kind of which has a stream of its own.

    Decoded images are kept in the folder ``cache``.
    """
    examples = choose(DATASETS, run.dataset, "data set")(run, data_dir, cache, report_nothing)
    target, others = _chosen(examples, run)
    division, order, pool, drawn, start = (stream(run.seed, number) for number in range(5))
    rows = few_labels(target, labels=run.labels, seed=division, rows=examples.rows)
    x = examples.inputs(rows.aux)
    is_image = x.dtype == torch.uint8
    preprocess = preprocess_of(run.weights, x.shape[1]) if is_image else torch.Tensor.float
    main = Attributes({run.main: target}, rows.main)
    augment: AugmentExamples = Augment(True, 2, 0.0) if is_image else no_augmentation
    learner = choose(LEARNERS, run.learner, "learner")(Offered(main, others, rows, augment))
    aux_labels = learner.aux.labels if isinstance(learner, JointTargets) else torch.empty(len(x), 0)
    torch.manual_seed(start)
    trunk = trunk_of(run, x.shape[1:], dropout=run.dropout)
    start_from(run.weights, trunk)
    network = learner.network(trunk, main.num_outputs)
    learner.start(network)
    optimizer = optimizer_of(run, network, run.lr or 0.003)
    reweighter = reweighter_of(run, learner.tasks, trunk)

    def evaluate(chosen: Tensor) -> Callable[[Network], Metrics]:
        def look(network: Network) -> Metrics:
            answers = main.answers(outputs_of(network, x, chosen, preprocess))[run.main]
            return metrics(target, answers, target.values[chosen])

        return look

    return Parts(
        network=network,
        learner=learner,
        reweighter=reweighter,
        optimizer=optimizer,
        noise=noise_of(run, optimizer, network, reweighter, num_examples=len(rows.aux)),
        batches=AttributeBatches(
            x,
            target.values,
            aux_labels,
            main=Sampler(rows.main, run.batch_main, order),
            aux=Sampler(rows.aux, run.batch_aux, pool),
            preprocess=preprocess,
        ),
        generator=torch.Generator().manual_seed(drawn),
        validation=evaluate(rows.validation),
        test=evaluate(rows.test),
        score=run.score,
    )


def _chosen(examples: Examples, run: MultiLabel) -> tuple[Target, dict[str, Target]]:
    """The main target, and the auxiliary ones."""
    unknown = [name for name in (run.main, *run.aux, *run.leave_out) if name not in examples.targets]
    if unknown:
        raise ValueError(f"{examples.name} has no target {', '.join(unknown)}. It has: {', '.join(examples.targets)}.")
    names = run.aux or tuple(examples.targets)
    if run.main in run.aux:
        raise ValueError(f"{run.main!r} is the main target and cannot be an auxiliary one, too.")
    used = [name for name in names if name != run.main and name not in run.leave_out]
    if not used and run.learner == "joint":
        raise ValueError("No auxiliary target is left. Name one or more with --aux, or choose --learner main_only.")
    return examples.targets[run.main], {name: examples.targets[name] for name in used}


def completed(run: MultiLabel) -> MultiLabel:
    """The run with names separated, and fingerprints of the files it reads."""
    if (run.dataset == "table") != bool(run.table):
        raise ValueError(
            "Learning from a table of your own needs --table FILE, --main COLUMN, --aux COLUMN,..., and no --dataset."
        )
    if run.features and not run.table:
        raise ValueError(f"--features chooses columns of a table; {run.dataset} has its own.")
    aux, features, left_out = (separated(names) for names in (run.aux, run.features, run.leave_out))
    run = replace(run, aux=aux, features=features, leave_out=left_out, weights_digest=digest(run.weights))
    if not run.table:
        return run
    if not run.aux and run.learner == "joint":
        raise ValueError(f"Learning from the table {run.table} needs --aux COLUMN,COLUMN,..., or --learner main_only.")
    return replace(run, table=str(Path(run.table)), table_digest=digest(run.table))


def _main_of(run: MultiLabel) -> str:
    if not run.main:
        raise ValueError(f"Learning from the table {run.table} needs --main COLUMN.")
    return run.main
