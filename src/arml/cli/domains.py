"""The parts of a run with several domains."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean

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
    tree_digest,
    trunk_of,
)
from arml.lab.data import Images, Sampler, digit_domains, pacs
from arml.lab.data.augment import Augment
from arml.lab.data.batches import DomainBatch, DomainBatches, SampledImages
from arml.lab.data.cache import ReportCount, report_nothing
from arml.lab.data.domain_set import Domain, DomainSet, draw_shots, exclude, load_folders
from arml.lab.data.preprocess import ImageNet
from arml.lab.learners.base import AugmentExamples
from arml.lab.learners.dsam import DSAM, DSAMSettings
from arml.lab.learners.fada import FADA, FADASettings
from arml.lab.learners.jigen import JiGen, JiGenSettings
from arml.lab.learners.joint_training import Baseline, DomainLearner, DomainSettings, JointTraining, TargetOnly
from arml.lab.learners.shape_bias import ShapeBias, ShapeBiasSettings
from arml.lab.models.network import Network
from arml.lab.run import Domains, separated
from arml.lab.tasks.jigsaw import Colours
from arml.lab.train import Evaluate, Metrics, Parts, error_rate

DATASETS: dict[str, Callable[[Domains, Path, Path, ReportCount], DomainSet]] = {
    "digits": lambda run, data_dir, cache, count: digit_domains.load_one_misleading(),
    "digits_misleading": lambda run, data_dir, cache, count: digit_domains.load_all_misleading(),
    "pacs": lambda run, data_dir, cache, count: pacs.load(data_dir, cache, size=run.image_size, progress=count),
    "folders": lambda run, data_dir, cache, count: load_folders(
        Path(run.folders), cache, size=run.image_size, progress=count
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
    """How preprocessing scales channels, which JiGen's grey tiles have to know."""
    return Colours(ImageNet().mean, ImageNet().std) if run.weights else None


AUGMENT = {
    "digits": Augment(flip=False, shift=1, noise=0.0),
    "digits_misleading": Augment(flip=False, shift=1, noise=0.0),
    "pacs": Augment(flip=True, shift=0, noise=0.0, crop=0.8),
    "folders": Augment(flip=True, shift=0, noise=0.0, crop=0.8),
}


def prepare(run: Domains, data_dir: Path, cache: Path, count: ReportCount) -> None:
    """Reads the data set once: what is wrong with it shows before many runs begin, and images are decoded once."""
    if run.folders and cache.resolve().is_relative_to(Path(run.folders).resolve()):
        raise ValueError(f"--out is inside {run.folders}, where it would be taken for a domain. Choose another folder.")
    dataset = choose(DATASETS, run.dataset, "data set")(run, data_dir, cache, count)
    target, _ = _target_and_sources(dataset, run)
    _shots(target, run, dataset.classes, seed=stream(run.seed, 0))
    if run.network == "resnet18" and not run.weights:
        warnings.warn("resnet18 starts from nothing; the paper's starts from ImageNet: --weights.", stacklevel=1)


def completed(run: Domains) -> Domains:
    """The run with names separated, and equal weights for learners that are not reweighted."""
    if (run.dataset == "folders") != bool(run.folders) or not run.target:
        raise ValueError(
            "Learning from folders of your own needs --folders FOLDER and --target DOMAIN, and no --dataset."
        )
    run = replace(run, leave_out=separated(run.leave_out), weights_digest=digest(run.weights))
    run = replace(run, folders_digest=tree_digest(run.folders))
    weighed = run.learner in run.weighted and run.shots != 0  # without shots nothing steers the weights
    return run if weighed else replace(run, method="uniform")


def build(run: Domains, data_dir: Path, cache: Path) -> Parts[DomainBatch]:
    """Everything ``run`` trains with. The seed decides all draws, each kind of which has a stream of its own.

    Decoded images are kept in the folder ``cache``.
    """
    dataset = choose(DATASETS, run.dataset, "data set")(run, data_dir, cache, report_nothing)
    target, sources = _target_and_sources(dataset, run)
    division, drawn, start, *orders = (stream(run.seed, number) for number in range(4 + len(sources)))
    few = _shots(target, run, dataset.classes, seed=division)
    learner = choose(LEARNERS, run.learner, "learner")(run, tuple(sources), AUGMENT[run.dataset])
    torch.manual_seed(start)
    trunk = trunk_of(run, target.x.shape[1:])
    start_from(run.weights, trunk)
    network = learner.network(trunk, len(dataset.classes))
    learner.start(network)
    optimizer = optimizer_of(run, network, run.lr or learner.settings.lr)
    # Divided by the number of sources, so that equal weights are the mean loss of the pooled sources.
    scaled = replace(run, aux_scale=run.aux_scale / len(sources))
    reweighter = reweighter_of(scaled, learner.tasks, trunk, train_on_main=learner.train_on_main)
    preprocess = preprocess_of(run.weights, target.x.shape[1])
    # Where the target's labels neither train nor steer, its images are not looked at, not even by BatchNorm.
    looks = len(few) and (learner.train_on_main or run.method != "uniform")
    shown = SampledImages(_images(target), Sampler(few, min(run.batch_target, len(few)), orders[0]) if looks else None)
    drawn_from = {
        name: SampledImages(_images(source), Sampler(source.train, run.batch_source, order))
        for (name, source), order in zip(sources.items(), orders[1:], strict=True)
    }
    test = exclude(target.test, few)
    return Parts(
        network=network,
        learner=learner,
        reweighter=reweighter,
        optimizer=optimizer,
        noise=noise_of(run, optimizer, network, reweighter, num_examples=sum(len(s.train) for s in sources.values())),
        batches=DomainBatches(shown, drawn_from, preprocess),
        generator=torch.Generator().manual_seed(drawn),
        validation=_on_sources(learner, sources, preprocess),
        test=lambda network: {"error": error_rate(network, _images(target), preprocess, test)},
        score=None if run.select == "last" else run.score,
        choose_after=learner.adapts_from,
    )


def _images(domain: Domain) -> Images:
    return Images(domain.x, domain.y)


def _on_sources(
    learner: DomainLearner, sources: Mapping[str, Domain], preprocess: Callable[[Tensor], Tensor]
) -> Evaluate:
    """The mean error over the sources' validation images: the target's labels are few and all learned from."""

    def look(network: Network) -> Metrics:
        errors = [
            error_rate(learner.validation_network(network, name), _images(source), preprocess, source.validation)
            for name, source in sources.items()
        ]
        return {"error": mean(errors)}

    return look


def _shots(target: Domain, run: Domains, classes: Sequence[str], *, seed: int) -> Tensor:
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


def _target_and_sources(dataset: DomainSet, run: Domains) -> tuple[Domain, dict[str, Domain]]:
    """The target, and the domains that are learned from."""
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
