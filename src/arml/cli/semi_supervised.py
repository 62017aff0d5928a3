"""The parts of a run of semi-supervised learning."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from arml.cli.names import choose, noise_of, optimizer_of, reweighter_of, stream, trunk_of
from arml.lab.data import Augment, Dataset, GcnZca, Images, Sampler, Scale, cifar10, digits, mnist5k, split, svhn
from arml.lab.data.batches import Batch, ImageBatches
from arml.lab.data.cache import ReportCount
from arml.lab.data.splits import validation_size
from arml.lab.learners.base import SemiSupervisedLearner
from arml.lab.learners.mean_teacher import MeanTeacher, MeanTeacherSettings
from arml.lab.learners.pi_model import PiModel, PiModelSettings
from arml.lab.learners.pseudo_label import PseudoLabel, PseudoLabelSettings
from arml.lab.learners.s4l import S4L, S4LSettings
from arml.lab.learners.supervised import Supervised, SupervisedSettings
from arml.lab.learners.vat import VAT, VATSettings
from arml.lab.models.network import Network
from arml.lab.run import SemiSupervised
from arml.lab.train import Metrics, Parts, error_rate


class Source(NamedTuple):
    """How a data set is read and treated."""

    load: Callable[[Path], Dataset]
    augment: Augment
    vat_epsilon: float
    """Length of VAT's perturbation, which goes with the scale of the numbers."""
    whiten: bool = False
    """Whether pixels are whitened (GCN and ZCA), not only scaled to [-1, 1]."""


DATASETS: dict[str, Source] = {
    "digits": Source(lambda _: digits.load(), Augment(flip=False, shift=1, noise=0.0), 1.0),
    "mnist5k": Source(lambda _: mnist5k.load(), Augment(flip=False, shift=2, noise=0.0), 1.0),
    "cifar10": Source(cifar10.load, Augment(flip=True, shift=2, noise=0.15), 6.0, whiten=True),
    "svhn": Source(svhn.load, Augment(flip=False, shift=2, noise=0.0), 1.0),
}

LEARNERS: dict[str, Callable[[SemiSupervised, Source], SemiSupervisedLearner]] = {
    "supervised": lambda run, source: Supervised(SupervisedSettings(), source.augment),
    "pi_model": lambda run, source: PiModel(PiModelSettings(ramp_steps=_ramp(run)), source.augment),
    "mean_teacher": lambda run, source: MeanTeacher(MeanTeacherSettings(ramp_steps=_ramp(run)), source.augment),
    "vat": lambda run, source: VAT(_vat(run, source), source.augment),
    "vat_entmin": lambda run, source: VAT(replace(_vat(run, source), entropy=0.06), source.augment),
    "pseudo_label": lambda run, source: PseudoLabel(PseudoLabelSettings(ramp_steps=_ramp(run)), source.augment),
    "s4l": lambda run, source: S4L(S4LSettings(), source.augment),
}


def prepare(run: SemiSupervised, data_dir: Path, cache: Path, count: ReportCount) -> None:
    """Reads the data set once, so that what is wrong with it shows before many runs begin."""
    del cache, count
    choose(DATASETS, run.dataset, "data set").load(data_dir)


def build(run: SemiSupervised, data_dir: Path, cache: Path) -> Parts[Batch]:
    """Everything ``run`` trains with. The seed decides all draws, each kind of which has a stream of its own.

    Whitening, which takes a minute to fit, is kept in the folder ``cache``.
    """
    source = choose(DATASETS, run.dataset, "data set")
    dataset = source.load(data_dir)
    preprocess: Callable[[Tensor], Tensor] = Scale()
    if source.whiten:  # once for all images: a matrix product for every batch would cost more than a small network
        whiten, preprocess = GcnZca.fit(dataset.train.x, cache), torch.Tensor.float
        dataset = dataset._replace(train=_changed(dataset.train, whiten), test=_changed(dataset.test, whiten))
    division, order, pool, drawn, start = (stream(run.seed, number) for number in range(5))
    parts = split(
        dataset.train.y,
        dataset.num_classes,
        labels=run.labels,
        validation=validation_size(run.dataset, len(dataset.train.y)),
        seed=division,
        include_labelled=run.labelled_in_pool,
    )
    learner = choose(LEARNERS, run.learner, "learner")(run, source)
    torch.manual_seed(start)
    trunk = trunk_of(run, dataset.train.x.shape[1:])
    network = learner.network(trunk, dataset.num_classes)
    learner.start(network)
    optimizer = optimizer_of(run, network, run.lr or learner.settings.lr)
    reweighter = reweighter_of(run, learner.tasks, trunk)
    labelled = Sampler(parts.labelled, run.batch_labelled, order)
    unlabelled = Sampler(parts.unlabelled, run.batch_unlabelled, pool)
    validation = Images(dataset.train.x[parts.validation], dataset.train.y[parts.validation])
    return Parts(
        network=network,
        learner=learner,
        reweighter=reweighter,
        optimizer=optimizer,
        noise=noise_of(run, optimizer, network, reweighter, num_examples=len(parts.unlabelled)),
        batches=ImageBatches(dataset.train, labelled, unlabelled, preprocess),
        generator=torch.Generator().manual_seed(drawn),
        validation=lambda network: _errors(network, validation, preprocess),
        test=lambda network: _errors(network, dataset.test, preprocess),
    )


def _errors(network: Network, images: Images, preprocess: Callable[[Tensor], Tensor]) -> Metrics:
    return {"error": error_rate(network, images, preprocess)}


def _changed(images: Images, preprocess: Callable[[Tensor], Tensor]) -> Images:
    return Images(torch.cat([preprocess(x) for x in images.x.split(1000)]), images.y)


def _ramp(run: SemiSupervised) -> int:
    return max(1, round(0.4 * run.steps))


def _vat(run: SemiSupervised, source: Source) -> VATSettings:
    return VATSettings(epsilon=source.vat_epsilon, ramp_steps=_ramp(run))
