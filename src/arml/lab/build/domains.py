"""Data and learner of a run with several domains: few labels in the target, the sources are auxiliary tasks."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import torch
from torch import Tensor

from arml.lab.build.cached_features import compute_features, float_features
from arml.lab.build.components import settle_method
from arml.lab.build.fingerprints import file_fingerprint, folder_fingerprint
from arml.lab.build.networks import check_start, choose_preprocess, choose_start
from arml.lab.build.skeleton import Contribution, Folders, seed_stream
from arml.lab.catalogue import choose
from arml.lab.data import Images, Sampler, digit_domains, pacs, pacs_misleading
from arml.lab.data.augment import Augment
from arml.lab.data.batches import DomainBatch, DomainBatches, SampledImages
from arml.lab.data.cache import ReportCount
from arml.lab.data.domain_set import Domain, DomainSet, draw_shots, exclude, load_folders
from arml.lab.data.preprocess import ImageNet
from arml.lab.learners.base import AugmentExamples
from arml.lab.learners.dsam import DSAM, DSAMSettings
from arml.lab.learners.fada import FADA, FADASettings
from arml.lab.learners.jigen import JiGen, JiGenSettings
from arml.lab.learners.joint_targets import no_augmentation
from arml.lab.learners.joint_training import Baseline, DomainLearner, DomainSettings, JointTraining, TargetOnly
from arml.lab.learners.shape_bias import ShapeBias, ShapeBiasSettings
from arml.lab.models.network import Network
from arml.lab.run import split_names
from arml.lab.run_kinds import Domains
from arml.lab.tasks.jigsaw import Colours
from arml.lab.train import Evaluate, Metrics, error_rate
from arml.lab.yardsticks import Labelled, measure_yardsticks


class DomainSource(NamedTuple):
    """How a set of domains is read and treated."""

    load: Callable[[Domains, Folders, ReportCount], DomainSet]
    augment: Augment


_DIGITS = Augment(flip=False, shift=1, noise=0.0)
_PHOTOS = Augment(flip=True, shift=0, noise=0.0, crop=0.8)

DATASETS: dict[str, DomainSource] = {
    "digits": DomainSource(lambda run, folders, count: digit_domains.load_one_misleading(), _DIGITS),
    "digits_misleading": DomainSource(lambda run, folders, count: digit_domains.load_all_misleading(), _DIGITS),
    "pacs": DomainSource(
        lambda run, folders, count: pacs.load(folders.data, folders.cache, size=run.image_size, progress=count),
        _PHOTOS,
    ),
    "pacs_misleading": DomainSource(
        lambda run, folders, count: pacs_misleading.load(
            folders.data, folders.cache, size=run.image_size, progress=count
        ),
        _PHOTOS,
    ),
    "folders": DomainSource(
        lambda run, folders, count: load_folders(Path(run.folders), folders.cache, size=run.image_size, progress=count),
        _PHOTOS,
    ),
}

LEARNERS: dict[str, Callable[[Domains, Sequence[str], AugmentExamples], DomainLearner]] = {
    "main_only": lambda run, sources, augment: TargetOnly(DomainSettings(), augment),
    "baseline": lambda run, sources, augment: Baseline(DomainSettings(), sources, augment),
    "jt": lambda run, sources, augment: JointTraining(DomainSettings(), sources, augment),
    "fada": lambda run, sources, augment: FADA(FADASettings(), sources, augment, run.steps),
    "jigen": lambda run, sources, augment: JiGen(JiGenSettings(colours=_colours(run)), sources, augment),
    "dsam": lambda run, sources, augment: DSAM(DSAMSettings(), sources, augment),
    "shape_bias": lambda run, sources, augment: ShapeBias(ShapeBiasSettings(colours=_colours(run)), sources, augment),
}


def _colours(run: Domains) -> Colours | None:
    """How preprocessing scales channels. JiGen needs it to make tiles grey."""
    return Colours(ImageNet().mean, ImageNet().std) if run.weights else None


class Loaded(NamedTuple):
    """Domains in memory, and the shots that are learned from."""

    classes: Sequence[str]
    target: Domain
    sources: dict[str, Domain]
    few: Tensor
    """Rows of the target's labelled training images."""


def load(run: Domains, folders: Folders, count: ReportCount) -> Loaded:
    """Reads the domains and draws the shots. Decoded images are kept in ``folders.cache``."""
    if run.folders and folders.cache.resolve().is_relative_to(Path(run.folders).resolve()):
        raise ValueError(f"--out is inside {run.folders}, where it would be taken for a domain. Choose another folder.")
    images = (run.dataset, run.folders, run.folders_digest, run.image_size)
    features = (run.network, run.weights_digest, choose_start(run)) if run.cache_features else ()
    dataset = folders.read_once((*images, *features), lambda: _read(run, folders, count))
    target, sources = _choose_domains(dataset, run)
    few = _shots_for(target, run, dataset.classes, seed=seed_stream(run.seed, 0))
    if run.network == "resnet18" and not run.weights:
        warnings.warn("resnet18 starts from nothing; the paper's starts from ImageNet: --weights.", stacklevel=1)
    return Loaded(dataset.classes, target, sources, few)


def _read(run: Domains, folders: Folders, count: ReportCount) -> DomainSet:
    """All domains, with outputs of the frozen layers in place of images if the run says so."""
    dataset = choose(DATASETS, run.dataset, "data set").load(run, folders, count)
    if not run.cache_features:
        return dataset
    features = {
        name: compute_features(domain.x, run, folders.cache, name=f"{dataset.name}-{name}", progress=count)
        for name, domain in dataset.domains.items()
    }
    return dataset._replace(domains={name: d._replace(x=features[name]) for name, d in dataset.domains.items()})


def contribute(run: Domains, loaded: Loaded) -> Contribution[DomainBatch]:
    """Makes the learner and its batches. The seed decides all draws."""
    classes, target, sources, few = loaded
    draw_seed, network_seed, *orders = (seed_stream(run.seed, number) for number in range(1, 4 + len(sources)))
    augment = no_augmentation if run.cache_features else DATASETS[run.dataset].augment
    learner = choose(LEARNERS, run.learner, "learner")(run, tuple(sources), augment)
    preprocess = float_features if run.cache_features else choose_preprocess(run.weights, target.x.shape[1])
    # Where the target's labels neither train nor steer, nothing looks at its images.
    looks = len(few) and (learner.train_on_main or run.method != "uniform")
    from_target = SampledImages(
        _images(target), Sampler(few, min(run.batch_target, len(few)), orders[0]) if looks else None
    )
    from_sources = {
        name: SampledImages(_images(source), Sampler(source.train, run.batch_source, order))
        for (name, source), order in zip(sources.items(), orders[1:], strict=True)
    }
    test = exclude(target.test, few)
    return Contribution(
        learner=learner,
        batches=DomainBatches(from_target, from_sources, preprocess),
        example=torch.Size([3, run.image_size, run.image_size]) if run.cache_features else target.x.shape[1:],
        num_outputs=len(classes),
        num_examples=sum(len(source.train) for source in sources.values()),
        lr=learner.settings.lr,
        network_seed=network_seed,
        draw_seed=draw_seed,
        validation=_evaluate_on_sources(learner, sources, preprocess),
        test=lambda network: {"error": error_rate(network, _images(target), preprocess, test)},
        score=None if run.select == "last" else run.score,
        choose_after=learner.adapts_from,
        aux_divisor=len(sources),  # equal weights are then the mean loss of the pooled sources
        train_on_main=learner.train_on_main,
        yardsticks=partial(measure_yardsticks, Labelled(*_images(target), few), Labelled(*_images(target), test)),
        start=choose_start(run),
    )


def _images(domain: Domain) -> Images:
    return Images(domain.x, domain.y)


def _evaluate_on_sources(
    learner: DomainLearner, sources: Mapping[str, Domain], preprocess: Callable[[Tensor], Tensor]
) -> Evaluate:
    """The mean error over the sources' validation images: the target's labels are few and all learned from."""

    def evaluate(network: Network) -> Metrics:
        errors = [
            error_rate(learner.validation_network(network, name), _images(source), preprocess, source.validation)
            for name, source in sources.items()
        ]
        return {"error": mean(errors)}

    return evaluate


def _shots_for(target: Domain, run: Domains, classes: Sequence[str], *, seed: int) -> Tensor:
    if run.shots == "all":
        return target.train
    counts = target.y[target.train].bincount(minlength=len(classes))
    most, rarest = int(counts.min()), classes[int(counts.argmin())]
    if run.shots > most:
        raise ValueError(
            f"{target.name} has {most} training images of {rarest}; {run.shots} shots of each class were asked for. "
            f"Ask for at most {most}, or for all."
        )
    return draw_shots(target, run.shots, len(classes), seed) if run.shots else target.train[:0]


def _choose_domains(dataset: DomainSet, run: Domains) -> tuple[Domain, dict[str, Domain]]:
    """The target, and the sources by name."""
    if run.target in run.leave_out:
        raise ValueError(f"{run.target!r} is the target and cannot be left out.")
    unknown = [name for name in (run.target, *run.leave_out) if name not in dataset.domains]
    if unknown:
        raise ValueError(
            f"{dataset.name} has no domain {', '.join(map(repr, unknown))}. It has: {', '.join(dataset.domains)}. "
            "Choose one of them with --target."
        )
    sources = {name: d for name, d in dataset.domains.items() if name != run.target and name not in run.leave_out}
    if not sources:
        raise ValueError("No source is left. Leave out fewer domains.")
    for source in sources.values():
        if not len(source.validation) or not len(source.train):
            raise ValueError(f"{source.name} has too few images: some are needed for training, some for validation.")
    return dataset.domains[run.target], sources


def complete(run: Domains) -> Domains:
    """Separates the names in the run, adds fingerprints, and sets equal weights where nothing can learn them."""
    if (run.dataset == "folders") != bool(run.folders) or not run.target:
        raise ValueError(
            "Learning from folders of your own needs --folders FOLDER and --target DOMAIN, and no --dataset."
        )
    check_start(run.network, choose_start(run))
    if run.cache_features and run.learner in ("jigen", "shape_bias"):
        raise ValueError(f"{run.learner} changes pixels, so features cannot be cached. Leave --cache-features out.")
    run = replace(run, leave_out=split_names(run.leave_out), weights_digest=file_fingerprint(run.weights))
    run = replace(run, folders_digest=folder_fingerprint(run.folders))
    # Without shots nothing steers the weights.
    return settle_method(run if run.shots != 0 else replace(run, method="uniform"))
