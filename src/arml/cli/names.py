"""Where a name becomes an object: tables, and the parts of a run made from them."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from arml.convergence import Convergence
from arml.lab.data import Augment, Dataset, GcnZca, Images, Sampler, Scale, cifar10, digits, mnist5k, split, svhn
from arml.lab.data.splits import validation_size
from arml.lab.learners.base import Learner
from arml.lab.learners.mean_teacher import MeanTeacher, MeanTeacherSettings
from arml.lab.learners.pi_model import PiModel, PiModelSettings
from arml.lab.learners.pseudo_label import PseudoLabel, PseudoLabelSettings
from arml.lab.learners.s4l import S4L, S4LSettings
from arml.lab.learners.supervised import Supervised, SupervisedSettings
from arml.lab.learners.vat import VAT, VATSettings
from arml.lab.models.network import Network, Trunk
from arml.lab.models.small import small
from arml.lab.models.wrn import wrn
from arml.lab.run import Run
from arml.lab.train import Parts
from arml.langevin import Langevin
from arml.methods import ARML, OLAUX, AdaLoss, CosineSim, Fixed, GatedARML, GradNorm, Method, Uniform
from arml.reweighter import Reweighter

T = TypeVar("T")


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


def _grid(first: float, trunk: Trunk) -> Fixed:
    """Weights of S4L's two tasks."""
    del trunk
    return Fixed((first, 2 - first))


LEARNERS: dict[str, Callable[[Run, Source], Learner]] = {
    "supervised": lambda run, source: Supervised(SupervisedSettings(), source.augment),
    "pi_model": lambda run, source: PiModel(PiModelSettings(ramp_steps=_ramp(run)), source.augment),
    "mean_teacher": lambda run, source: MeanTeacher(MeanTeacherSettings(ramp_steps=_ramp(run)), source.augment),
    "vat": lambda run, source: VAT(_vat(run, source), source.augment),
    "vat_entmin": lambda run, source: VAT(replace(_vat(run, source), entropy=0.06), source.augment),
    "pseudo_label": lambda run, source: PseudoLabel(PseudoLabelSettings(ramp_steps=_ramp(run)), source.augment),
    "s4l": lambda run, source: S4L(S4LSettings(), source.augment),
}

METHODS: dict[str, Callable[[Trunk], Method[Any]]] = {
    "uniform": lambda _: Uniform(),
    "adaloss": lambda _: AdaLoss(),
    "gradnorm": lambda trunk: GradNorm(layer=trunk.last_layer),
    "cosine_sim": lambda _: CosineSim(),
    "ol_aux": lambda _: OLAUX(),
    "arml": lambda _: ARML(),
    "arml_full": lambda _: ARML(),
    "gated_arml": lambda _: GatedARML(),
    **{f"grid-{first:g}": partial(_grid, first) for first in (0, 0.5, 1, 1.5, 2)},
}

TWO_STAGES = {"arml_full"}
"""Methods that sample with noise until the weights have converged, and keep them from then on."""


def choose(table: dict[str, T], name: str, what: str) -> T:
    """The entry of ``table``, or an error that lists what there is."""
    if name not in table:
        raise ValueError(f"Unknown {what} {name!r}. Known: {', '.join(sorted(table))}.")
    return table[name]


def build(run: Run, data_dir: Path, cache: Path) -> Parts:
    """Everything ``run`` trains with. The seed decides all draws, each kind of which has a stream of its own.

    Whitening, which takes a minute to fit, is kept in the folder ``cache``.
    """
    source = choose(DATASETS, run.dataset, "data set")
    dataset = source.load(data_dir)
    preprocess: Callable[[Tensor], Tensor] = Scale()
    if source.whiten:  # once for all images: a matrix product for every batch would cost more than a small network
        whiten, preprocess = GcnZca.fit(dataset.train.x, cache), torch.Tensor.float
        dataset = dataset._replace(train=_changed(dataset.train, whiten), test=_changed(dataset.test, whiten))
    division, order, pool, drawn, start = (_stream(run.seed, number) for number in range(5))
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
    trunk = _trunk(run, num_channels=dataset.train.x.shape[1])
    network = Network(trunk, trunk.num_features, {"class": dataset.num_classes, **learner.heads})
    learner.start(network)
    optimizer = torch.optim.Adam(network.parameters(), lr=run.lr or learner.settings.lr)
    reweighter = _reweighter(run, learner, trunk)
    return Parts(
        network=network,
        learner=learner,
        reweighter=reweighter,
        optimizer=optimizer,
        noise=_noise(run, optimizer, network, reweighter, num_examples=len(parts.unlabelled)),
        labelled=Sampler(parts.labelled, run.batch_labelled, order),
        unlabelled=Sampler(parts.unlabelled, run.batch_unlabelled, pool),
        generator=torch.Generator().manual_seed(drawn),
        train=dataset.train,
        validation=Images(dataset.train.x[parts.validation], dataset.train.y[parts.validation]),
        test=dataset.test,
        preprocess=preprocess,
    )


def _changed(images: Images, preprocess: Callable[[Tensor], Tensor]) -> Images:
    return Images(torch.cat([preprocess(x) for x in images.x.split(1000)]), images.y)


def _stream(seed: int, number: int) -> int:
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


def _trunk(run: Run, num_channels: int) -> Trunk:
    match = re.fullmatch(r"small-(\d+)|wrn-(\d+)-(\d+)", run.network)
    if not match:
        raise ValueError(
            f"Unknown network {run.network!r}. Known: small-FEATURES such as small-32, "
            "wrn-DEPTH-WIDTH such as wrn-28-2."
        )
    features, depth, width = (int(number or 0) for number in match.groups())
    if features:
        return small(num_channels, features, bn_momentum=run.bn_momentum)
    return wrn(depth, width, num_channels, bn_momentum=run.bn_momentum)


def _reweighter(run: Run, learner: Learner, trunk: Trunk) -> Reweighter | None:
    if not learner.tasks:
        return None
    method = choose(METHODS, run.method, "method")(trunk)
    if run.weight_lr is not None:
        method = _with_lr(method, run.weight_lr)
    rule = Convergence(run.window, tolerance=0.1) if run.method in TWO_STAGES else None
    return Reweighter(method, learner.tasks, trunk, every=run.every, aux_scale=run.aux_scale, convergence=rule)


def _with_lr(method: Method[Any], lr: float) -> Method[Any]:
    if isinstance(method, GatedARML):
        return replace(method, arml=replace(method.arml, lr=lr))
    return replace(method, lr=lr) if isinstance(method, ARML | GradNorm | OLAUX) else method


def _noise(
    run: Run, optimizer: torch.optim.Adam, network: Network, reweighter: Reweighter | None, *, num_examples: int
) -> Langevin | None:
    if run.method not in TWO_STAGES or reweighter is None:
        return None
    return Langevin(
        optimizer,
        num_examples,
        parameters=network.trunk.parameters(),
        temperature=run.temperature,
        until=lambda: reweighter.converged,
        seed=run.seed,
    )


def _ramp(run: Run) -> int:
    return max(1, round(0.4 * run.steps))


def _vat(run: Run, source: Source) -> VATSettings:
    return VATSettings(epsilon=source.vat_epsilon, ramp_steps=_ramp(run))
