"""Data and learner of a semi-supervised run: few labelled and many unlabelled images."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from arml.lab.build.components import settle_method
from arml.lab.build.skeleton import Contribution, Folders, seed_stream
from arml.lab.catalogue import choose
from arml.lab.data import Augment, Dataset, GcnZca, Images, Sampler, Scale, cifar10, digits, mnist5k, split, svhn
from arml.lab.data.batches import Batch, ImageBatches
from arml.lab.data.cache import Array, ReportCount, keep_array
from arml.lab.data.preprocess import fingerprint
from arml.lab.data.splits import validation_size
from arml.lab.learners.base import SemiSupervisedLearner
from arml.lab.learners.mean_teacher import MeanTeacher, MeanTeacherSettings
from arml.lab.learners.pi_model import PiModel, PiModelSettings
from arml.lab.learners.pseudo_label import PseudoLabel, PseudoLabelSettings
from arml.lab.learners.s4l import S4L, TASKS, S4LSettings
from arml.lab.learners.supervised import Supervised, SupervisedSettings
from arml.lab.learners.vat import RECIPE_XI, VAT, VATSettings
from arml.lab.run_kinds import SemiSupervised
from arml.lab.train import Evaluate, error_rate
from arml.lab.yardsticks import Labelled, measure_yardsticks


class ImageSource(NamedTuple):
    """How a data set is read and treated."""

    load: Callable[[Path], Dataset]
    augment: Augment
    vat_epsilon: float
    """Length of VAT's perturbation, in the units of the preprocessed pixels."""
    whiten: bool = False
    """Whether pixels are whitened (GCN and ZCA), not only scaled to [-1, 1]."""


DATASETS: dict[str, ImageSource] = {
    "digits": ImageSource(lambda _: digits.load(), Augment(flip=False, shift=1, noise=0.0), 1.0),
    "mnist5k": ImageSource(lambda _: mnist5k.load(), Augment(flip=False, shift=2, noise=0.0), 1.0),
    "cifar10": ImageSource(cifar10.load, Augment(flip=True, shift=2, noise=0.15), 6.0, whiten=True),
    "svhn": ImageSource(svhn.load, Augment(flip=False, shift=2, noise=0.0), 1.0),
}

LEARNERS: dict[str, Callable[[SemiSupervised, ImageSource], SemiSupervisedLearner]] = {
    "supervised": lambda run, source: Supervised(SupervisedSettings(), source.augment),
    "pi_model": lambda run, source: PiModel(PiModelSettings(ramp_steps=_ramp(run)), source.augment),
    "mean_teacher": lambda run, source: MeanTeacher(MeanTeacherSettings(ramp_steps=_ramp(run)), source.augment),
    "vat": lambda run, source: VAT(_vat_settings(run, source), source.augment),
    "vat_entmin": lambda run, source: VAT(replace(_vat_settings(run, source), entropy=0.06), source.augment),
    "pseudo_label": lambda run, source: PseudoLabel(PseudoLabelSettings(ramp_steps=_ramp(run)), source.augment),
    "s4l": lambda run, source: S4L(_s4l_settings(run), source.augment),
}


class Loaded(NamedTuple):
    """A data set in memory."""

    dataset: Dataset
    preprocess: Callable[[Tensor], Tensor]
    """What still happens to the images of a batch."""


def load(run: SemiSupervised, folders: Folders, count: ReportCount) -> Loaded:
    """Reads the data set. Whitening takes a minute, so whitened images are kept in ``folders.cache``."""
    return folders.read_once(run.dataset, lambda: _read(run, folders, count))


def _read(run: SemiSupervised, folders: Folders, count: ReportCount) -> Loaded:
    source = choose(DATASETS, run.dataset, "data set")
    dataset = source.load(folders.data)
    if not source.whiten:
        return Loaded(dataset, Scale())
    # Once for all runs: a matrix product for every batch would cost more than a small network.
    return Loaded(_whiten(dataset, folders.cache, count), torch.Tensor.float)


def contribute(run: SemiSupervised, loaded: Loaded) -> Contribution[Batch]:
    """Splits the data and makes the learner. The seed decides all draws."""
    dataset, preprocess = loaded
    learner = choose(LEARNERS, run.learner, "learner")(run, DATASETS[run.dataset])
    division, order, pool, draw_seed, network_seed = (seed_stream(run.seed, number) for number in range(5))
    parts = split(
        dataset.train.y,
        dataset.num_classes,
        labels=run.labels,
        validation=validation_size(run.dataset, len(dataset.train.y)),
        seed=division,
        include_labelled=run.labelled_in_pool,
    )
    labelled = Sampler(parts.labelled, _labelled_per_step(run), order)
    unlabelled = Sampler(parts.unlabelled, run.batch_unlabelled, pool)
    validation = Images(dataset.train.x[parts.validation], dataset.train.y[parts.validation])
    return Contribution(
        learner=learner,
        batches=ImageBatches(dataset.train, labelled, unlabelled, preprocess),
        example=dataset.train.x.shape[1:],
        num_outputs=dataset.num_classes,
        num_examples=len(parts.unlabelled),
        lr=learner.settings.lr,
        network_seed=network_seed,
        draw_seed=draw_seed,
        validation=_measure_error(validation, preprocess),
        test=_measure_error(dataset.test, preprocess),
        score=run.score,
        yardsticks=partial(
            measure_yardsticks,
            Labelled(*dataset.train, parts.labelled),
            Labelled(*dataset.test, torch.arange(len(dataset.test.y))),
        ),
    )


def complete(run: SemiSupervised) -> SemiSupervised:
    """Sets equal weights where no method learns them."""
    return settle_method(run)


def _measure_error(images: Images, preprocess: Callable[[Tensor], Tensor]) -> Evaluate:
    return lambda network: {"error": error_rate(network, images, preprocess)}


def _whiten(dataset: Dataset, cache: Path, count: ReportCount) -> Dataset:
    """``dataset`` whitened as its training images say, from arrays in ``cache``."""

    def chunks(x: Tensor) -> Iterator[Array]:
        whiten = GcnZca.fit(dataset.train.x, cache)
        for part in x.split(1000):
            yield whiten(part).numpy()

    def keep(name: str, images: Images, key: str) -> Images:
        shape = tuple(images.x.shape)
        x = keep_array(
            chunks(images.x), cache, name=f"whitened-{name}", key=key, shape=shape, dtype=np.float32, progress=count
        )
        return Images(x, images.y)

    # Whitened test images depend on the training images, too.
    key = hashlib.sha256(f"{fingerprint(dataset.train.x)} {fingerprint(dataset.test.x)}".encode()).hexdigest()[:16]
    return dataset._replace(train=keep("train", dataset.train, key), test=keep("test", dataset.test, key))


def _ramp(run: SemiSupervised) -> int:
    return max(1, round(0.4 * run.steps))


def _vat_settings(run: SemiSupervised, source: ImageSource) -> VATSettings:
    settings = VATSettings(epsilon=source.vat_epsilon, ramp_steps=_ramp(run))
    return replace(settings, xi=RECIPE_XI) if run.as_released else settings


def _s4l_settings(run: SemiSupervised) -> S4LSettings:
    unknown = [name for name in run.leave_out if name not in TASKS]
    if unknown or set(run.leave_out) == set(TASKS):
        raise ValueError(f"`leave_out` should be one of {', '.join(TASKS)}, or none. Got {', '.join(run.leave_out)}.")
    settings = S4LSettings(augment_student=True, exemplar_offset=2.0) if run.as_released else S4LSettings()
    return replace(settings, tasks=tuple(name for name in TASKS if name not in run.leave_out))


def _labelled_per_step(run: SemiSupervised) -> int:
    own = run.supervised_batch if run.learner == "supervised" else None
    return run.batch_labelled if own is None else own
