"""Data and learner of a run with many targets: one has few labels, the others are auxiliary tasks."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from arml.lab.build.cached_features import compute_features, float_features
from arml.lab.build.components import make_optimizer, settle_method
from arml.lab.build.fingerprints import file_fingerprint
from arml.lab.build.networks import check_start, choose_preprocess, choose_start, count_members
from arml.lab.build.skeleton import Contribution, Folders, seed_stream
from arml.lab.build.table_remarks import remark_division
from arml.lab.catalogue import GRID_SEARCH, choose
from arml.lab.data import Augment, Sampler, celeba, table, yeast
from arml.lab.data.batches import AttributeBatch, RepeatedBatches
from arml.lab.data.cache import ReportCount
from arml.lab.data.piecewise import PiecewiseLinear
from arml.lab.data.target_splits import FewLabels, few_labels, fold_labels
from arml.lab.data.targets import Examples, Target
from arml.lab.learners.base import AugmentExamples
from arml.lab.learners.fork_merge import Branching, ForkMerge
from arml.lab.learners.joint_targets import JointTargets, MainTarget, no_augmentation
from arml.lab.metrics import metrics
from arml.lab.models.network import Network
from arml.lab.run import split_names
from arml.lab.run_kinds import FOLDS, MultiLabel
from arml.lab.tasks.attributes import Attributes
from arml.lab.train import Evaluate, Metrics, outputs_of, set_lr
from arml.lab.yardsticks import Labelled, measure_constant, measure_yardsticks

DATASETS: dict[str, Callable[[MultiLabel, Folders, ReportCount], Examples]] = {
    "yeast": lambda run, folders, count: yeast.load(),
    "celeba": lambda run, folders, count: celeba.load(folders.data, folders.cache, size=run.image_size, progress=count),
    "table": lambda run, folders, count: table.load(
        Path(run.table),
        main=_main_column(run),
        aux=run.aux,
        features=run.features,
        kinds=table.Kinds(run.as_numbers, run.as_classes),
    ),
}


class Loaded(NamedTuple):
    """Examples in memory, the targets that the run names, and the rows they are learned from."""

    examples: Examples
    main: Target
    others: dict[str, Target]
    """Auxiliary targets by name."""
    rows: FewLabels


class LearnerParts(NamedTuple):
    """What learners are made from."""

    run: MultiLabel
    main: Attributes
    loaded: Loaded
    augment: AugmentExamples
    validation: Evaluate

    def others(self) -> Attributes:
        """The auxiliary targets."""
        return Attributes(self.loaded.others, self.loaded.rows.aux)


ALONE = ("main_only", "linear", "forest")
"""Learners that need no auxiliary target."""
LR = 0.003
"""Step size of the optimiser unless the run has its own."""
LEARNERS: dict[str, Callable[[LearnerParts], MainTarget | JointTargets]] = {
    "main_only": lambda given: MainTarget(given.main, given.augment),
    "joint": lambda given: JointTargets(given.main, given.others(), given.augment),
    "forkmerge": lambda given: ForkMerge(given.main, given.others(), given.augment, _branching(given)),
}


def _branching(given: LearnerParts) -> Branching:
    """Branches are merged before every evaluation, so that only merged networks are chosen and tested."""
    run, validation = given.run, given.validation
    return Branching(
        make_optimizer=lambda network: make_optimizer(run, network, run.lr or LR),
        set_lr=lambda optimizer, step: set_lr(optimizer, run, step),
        score=lambda network: run.score(validation(network)),
        merges_after=lambda steps: steps % run.evaluate_every == 0 or steps == run.steps,
    )


def load(run: MultiLabel, folders: Folders, count: ReportCount) -> Loaded:
    """Reads the data set and divides it. Decoded images are kept in ``folders.cache``."""
    examples = _read_once(run, folders, count)
    main, others = _choose_targets(examples, run)
    if not run.table:
        rows = few_labels(main, labels=run.labels, seed=seed_stream(run.seed, 0), rows=examples.rows)
        return Loaded(examples, main, others, rows)
    rows = fold_labels(main, labels=run.labels, seed=run.seed, folds=FOLDS, choosing=run.select != "last")
    remark_division(Path(run.table), run.main, main, others, rows)
    return Loaded(examples, main, others, rows)


def _read_once(run: MultiLabel, folders: Folders, count: ReportCount) -> Examples:
    """The examples. Tables are small and come with remarks on the run's targets, so every run reads them anew."""
    if run.table:
        return _read(run, folders, count)
    features = (run.network, run.weights_digest, choose_start(run)) if run.cache_features else ()
    return folders.read_once((run.dataset, run.image_size, *features), lambda: _read(run, folders, count))


def _read(run: MultiLabel, folders: Folders, count: ReportCount) -> Examples:
    """The examples, with outputs of the frozen layers in place of images if the run says so."""
    examples = choose(DATASETS, run.dataset, "data set")(run, folders, count)
    if not run.cache_features:
        return examples
    images = examples.inputs(torch.arange(0))
    features = compute_features(images, run, folders.cache, name=examples.name, progress=count)
    return examples._replace(inputs=lambda train: features)


def contribute(run: MultiLabel, loaded: Loaded) -> Contribution[AttributeBatch]:
    """Makes the learner and its batches. The seed decides all draws."""
    target, rows = loaded.main, loaded.rows
    order, pool, draw_seed, network_seed = (seed_stream(run.seed, number) for number in range(1, 5))
    x = loaded.examples.inputs(rows.aux)
    x = PiecewiseLinear(x[rows.aux], run.pieces)(x) if run.pieces else x
    is_image = x.dtype == torch.uint8
    preprocess = choose_preprocess(run.weights, x.shape[1]) if is_image else float_features
    main = Attributes({run.main: target}, rows.main)

    def evaluate_on(chosen: Tensor) -> Evaluate:
        def evaluate(network: Network) -> Metrics:
            if not len(chosen):
                return {}
            answers = main.answers(outputs_of(network, x, chosen, preprocess))[run.main]
            return metrics(target, answers, target.values[chosen])

        return evaluate

    augment, validation = Augment(True, 2, 0.0) if is_image else no_augmentation, evaluate_on(rows.validation)
    learner = choose(LEARNERS, run.learner, "learner")(LearnerParts(run, main, loaded, augment, validation))
    aux_labels = learner.aux.labels if isinstance(learner, JointTargets) else torch.empty(len(x), 0)
    return Contribution(
        learner=learner,
        batches=RepeatedBatches(
            x,
            target.values,
            aux_labels,
            times=count_members(run.network),
            main=Sampler(rows.main, run.batch_main, order),
            aux=Sampler(rows.aux, run.batch_aux, pool),
            preprocess=preprocess,
        ),
        example=torch.Size([3, run.image_size, run.image_size]) if run.cache_features else x.shape[1:],
        num_outputs=main.num_outputs,
        num_examples=len(rows.aux),
        lr=LR,
        network_seed=network_seed,
        draw_seed=draw_seed,
        validation=validation,
        test=evaluate_on(rows.test),
        score=None if run.select == "last" else run.score,
        yardsticks=_yardsticks(run, x, target, rows),
        dropout=run.dropout,
        start=choose_start(run),
    )


def _yardsticks(run: MultiLabel, x: Tensor, target: Target, rows: FewLabels) -> Callable[[], Metrics]:
    """Errors of simple models; for a table the regressions are lines of their own, with a penalty that was chosen."""
    test = Labelled(x, target.values, rows.test)
    if run.table:
        return partial(measure_constant, test, numeric=target.is_numeric)
    return partial(measure_yardsticks, Labelled(x, target.values, rows.main), test, numeric=target.is_numeric)


def _choose_targets(examples: Examples, run: MultiLabel) -> tuple[Target, dict[str, Target]]:
    """The main target, and the auxiliary ones by name."""
    unknown = [name for name in (run.main, *run.aux, *run.leave_out) if name not in examples.targets]
    if unknown:
        raise ValueError(f"{examples.name} has no target {', '.join(unknown)}. It has: {', '.join(examples.targets)}.")
    names = run.aux or tuple(examples.targets)
    if run.main in run.aux:
        raise ValueError(f"{run.main!r} is the main target and cannot be an auxiliary one, too.")
    used = [name for name in names if name != run.main and name not in run.leave_out]
    if not used and run.learner not in ALONE:
        raise ValueError("No auxiliary target is left. Name one or more with --aux, or leave out fewer.")
    return examples.targets[run.main], {name: examples.targets[name] for name in used}


def complete(run: MultiLabel) -> MultiLabel:
    """Separates the names in the run, and adds fingerprints of the files it reads."""
    if (run.dataset == "table") != bool(run.table):
        raise ValueError(
            "Learning from a table of your own needs --table FILE, --main COLUMN, --aux COLUMN,..., and no --dataset."
        )
    for option in ("features", "as_numbers", "as_classes"):
        if getattr(run, option) and not run.table:
            flag = option.replace("_", "-")
            raise ValueError(f"--{flag} names columns of a table of your own; {run.dataset} is none. Leave it out.")
    run = _split_columns(run)
    if run.cache_features and run.dataset != "celeba":
        raise ValueError(f"--cache-features is for images; {run.dataset} has rows of a table. Leave it out.")
    check_start(run.network, choose_start(run))
    run = settle_method(run)
    run = replace(run, weights_digest=file_fingerprint(run.weights))
    if not run.table:
        return run
    if not run.aux and run.learner not in ALONE:
        raise ValueError(
            f"Learning from the table {run.table} needs --aux COLUMN,COLUMN,...: columns that may help. "
            "`arml train mlc --learner main_only` learns without them."
        )
    run = replace(run, table=str(Path(run.table)), table_digest=file_fingerprint(run.table))
    needs_validation = run.learner == "forkmerge" or run.method.startswith(GRID_SEARCH)
    return replace(run, select="average_precision") if needs_validation and run.select == "last" else run


def _split_columns(run: MultiLabel) -> MultiLabel:
    """Separates the names of columns in the run."""
    known = table.column_names(Path(run.table)) if run.table else ()
    return replace(
        run,
        aux=split_names(run.aux, known),
        features=split_names(run.features, known),
        as_numbers=split_names(run.as_numbers, known),
        as_classes=split_names(run.as_classes, known),
        leave_out=split_names(run.leave_out, known),
    )


def _main_column(run: MultiLabel) -> str:
    if not run.main:
        raise ValueError(f"Learning from the table {run.table} needs --main COLUMN.")
    return run.main
