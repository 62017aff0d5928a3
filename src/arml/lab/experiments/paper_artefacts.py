"""The paper's tables and figures by name, at full size and reduced to two cores, and one experiment beyond it.

Paper: Shi et al., *Auxiliary Task Reweighting for Minimum-data Learning*, NeurIPS 2020. Its Table 4 is the one on PACS.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from arml.lab.catalogue import LEARNERS
from arml.lab.experiments import domain_runs, multi_label_runs, semi_supervised_runs
from arml.lab.experiments.artefact import Artefact, Part
from arml.lab.run import MethodName
from arml.lab.run_kinds import Domains, DomainsName, MultiLabel, SemiSupervised

PAPER_METHODS: tuple[MethodName, ...] = ("uniform", "adaloss", "gradnorm", "cosine_sim", "ol_aux", "arml")
"""The weightings of the paper's tables."""
WEIGHTINGS: tuple[MethodName, ...] = (*PAPER_METHODS, "agreement")
"""Those, and the recommended one."""
FEW: tuple[MethodName, ...] = ("uniform", "arml", "agreement")
PACS_TARGETS = ("sketch", "art_painting", "cartoon", "photo")
ON_FEATURES: tuple[DomainsName, ...] = ("main_only", "baseline", "jt", "fada")
"""Learners that neither change pixels nor look at layers before the last."""
ON_PIXELS: tuple[DomainsName, ...] = ("jigen", "shape_bias")
"""Learners that cut images into tiles: their features cannot be computed in advance."""
WITH_WEIGHTS: tuple[DomainsName, ...] = ("baseline", "jt", "fada")
MAINS = ("Smiling", "Male", "Wearing_Lipstick", "5_o_Clock_Shadow")
"""Attributes of different balance: nearly half of the faces have the first three, one in ten has the last."""
CELEBA_WEIGHT_STEPS = {"arml": 0.0761, "ol_aux": 0.0157}
"""`arml tune` chose them, each among eight; other weightings have no step size."""
SSL_DATASETS = ("cifar10", "svhn")
UNKNOWN: Mapping[str, float] = {}
R = TypeVar("R", Domains, MultiLabel)

PACS_SECONDS = {"main_only": 5.0, "fada": 16.0, "dsam": 95.0, "jigen": 82.0, "shape_bias": 84.0, "": 13.0}
CELEBA_SECONDS = {"main_only": 5.0, "": 14.0}
SSL_SECONDS = {"supervised": 12.0, "vat": 26.0, "vat_entmin": 26.0, "s4l": 60.0, "": 17.0}
"""Seconds of one core per run by learner; docs/reproduce.md says what was timed, and what was assumed."""


def on_features(run: R) -> R:
    """``run`` on the outputs of a network learned on ImageNet, of which only the last layer is trained."""
    return replace(run, network="efficientnet-lite0", freeze=8, cache_features=True)


def pacs_on_features(dataset: str) -> Domains:
    """PACS at 112 pixels, on cached features: seconds per run. `arml tune` chose steps and rate, docs/reproduce.md."""
    run = on_features(replace(domain_runs.cpu(dataset), image_size=112))
    return replace(run, steps=300, lr=0.001, batch_source=16, evaluate_every=50, checkpoint_every=300)


def celeba_on_features() -> MultiLabel:
    """CelebA at 96 pixels, on cached features: seconds per run. `arml tune` chose steps and rates, see there."""
    run = on_features(replace(multi_label_runs.cpu("celeba"), image_size=96))
    return replace(run, steps=200, lr=0.002, evaluate_every=50, checkpoint_every=200)


def few_labels(dataset: str) -> SemiSupervised:
    """50 labels per class and steps enough for a small network to be helped by unlabelled images, whatever learner."""
    run = replace(semi_supervised_runs.cpu(dataset), labels=500, batch_labelled=16, batch_unlabelled=16)
    return replace(run, steps=1000, checkpoint_every=1000)


def _table_1(scale: str) -> Sequence[Part]:
    make = semi_supervised_runs.paper if scale == "gpu" else few_labels
    table = semi_supervised_runs.Table(methods=WEIGHTINGS, grid=scale == "gpu")
    seconds = UNKNOWN if scale == "gpu" else SSL_SECONDS
    return [Part(make(dataset), table, seconds) for dataset in SSL_DATASETS]


def _table_2(scale: str) -> Sequence[Part]:
    if scale == "gpu":
        table = multi_label_runs.Table(methods=WEIGHTINGS)
        return [Part(multi_label_runs.paper("celeba"), table, UNKNOWN)]
    one = multi_label_runs.Table(mains=MAINS, label_counts=(0.01,), methods=WEIGHTINGS)
    five = multi_label_runs.Table(mains=MAINS, label_counts=(0.05,), methods=FEW)
    return [Part(celeba_on_features(), table, CELEBA_SECONDS, CELEBA_WEIGHT_STEPS) for table in (one, five)]


def _table_3(scale: str) -> Sequence[Part]:
    """The weights of some runs of Table 2: what is finished there is not trained again."""
    methods: tuple[MethodName, ...] = ("arml", "agreement")
    if scale == "gpu":
        table = multi_label_runs.Table(methods=methods, main_only=False)
        return [Part(multi_label_runs.paper("celeba"), table, UNKNOWN)]
    table = multi_label_runs.Table(mains=MAINS, label_counts=(0.01,), methods=methods, main_only=False)
    return [Part(celeba_on_features(), table, CELEBA_SECONDS, CELEBA_WEIGHT_STEPS)]


def _table_4(scale: str) -> Sequence[Part]:
    if scale == "gpu":
        everyone = domain_runs.Table(targets=PACS_TARGETS, methods=FEW, learners=tuple(LEARNERS["dg"]))
        return [Part(domain_runs.paper("pacs"), everyone, UNKNOWN)]
    base = pacs_on_features("pacs")
    table = domain_runs.Table(targets=PACS_TARGETS, methods=FEW, beside=FEW, learners=ON_FEATURES)
    blocks = replace(table, learners=("dsam",))
    pixels = replace(table, learners=ON_PIXELS, beside=("uniform",))
    return [
        Part(base, table, PACS_SECONDS),
        Part(replace(base, freeze=7), blocks, PACS_SECONDS),  # D-SAM joins the outputs of two blocks or more
        Part(replace(base, cache_features=False, evaluate_every=300), pixels, PACS_SECONDS),
    ]


def _figure_2(scale: str) -> Sequence[Part]:
    if scale == "gpu":
        counts = (500, 1000, 2000, 4000, 8000)
        table = semi_supervised_runs.Table(counts, ("supervised",), FEW, grid=True)
        return [Part(semi_supervised_runs.paper("cifar10"), table, UNKNOWN)]
    table = semi_supervised_runs.Table((250, 500), ("supervised",), FEW, grid=False)
    return [Part(few_labels(dataset), table, SSL_SECONDS) for dataset in SSL_DATASETS]


def _figure_3(scale: str) -> Sequence[Part]:
    table = domain_runs.Table(
        targets=("art_painting",), shot_counts=(1, 2, 3, 4, 5), methods=FEW, beside=FEW, learners=WITH_WEIGHTS
    )
    return [_on_pacs(table, scale)]


def _figure_4(scale: str) -> Sequence[Part]:
    methods: tuple[MethodName, ...] = ("arml", "agreement")
    table = domain_runs.Table(targets=("art_painting",), shot_counts=(1, 100, "all"), methods=methods, learners=("jt",))
    return [_on_pacs(table, scale)]


def _on_pacs(table: domain_runs.Table, scale: str) -> Part:
    if scale == "gpu":
        return Part(domain_runs.paper("pacs"), table, UNKNOWN)
    return Part(pacs_on_features("pacs"), table, PACS_SECONDS)


def _misleading(scale: str) -> Sequence[Part]:
    methods: tuple[MethodName, ...] = ("uniform", "arml", "gated_arml", "agreement")
    base = pacs_on_features("pacs_misleading")
    table = replace(domain_runs.default_table(base), learners=("main_only", "jt"), methods=methods)
    if scale == "gpu":
        full = replace(domain_runs.paper("pacs"), dataset="pacs_misleading", target="photo")
        return [Part(full, table, UNKNOWN)]
    return [Part(base, table, PACS_SECONDS)]


_SSL_CPU = (
    "data as they are in the data folder: the copies that were used here have 10 000 training images of CIFAR-10 and "
    "8 000 of SVHN",
    "plain-64, three convolutions, in place of WRN-28-2; 1 000 steps of 16 + 16 images in place of 200 000 of "
    "128 + 128",
    "500 labels (paper: 4 000 on CIFAR-10, 1 000 on SVHN)",
    "weights learned every 5 steps (paper: every step)",
    "no grid search",
)
_CELEBA_CPU = (
    "EfficientNet-Lite0 from ImageNet in place of ResNet18 from nothing; only its last layer is trained, on features "
    "that are computed once, without augmentation; 96 pixels",
    "200 steps of 32 + 32 images in place of 57 240 of 256 + 256; Adam in place of SGD",
    "weights learned every 25 steps (paper: every step)",
    "several main attributes of different balance (paper: 5_o_Clock_Shadow), also with 5 % of the labels",
    "average precision is the headline: with one positive in ten, an error says little",
)
_PACS_CPU = (
    "EfficientNet-Lite0 from ImageNet in place of ResNet18 from ImageNet; only its last layer is trained, on features "
    "that are computed once, without augmentation; 112 pixels",
    "300 steps of 16 images per source in place of 5 000 of 42; Adam in place of SGD",
    "weights learned every 5 steps (paper: every step)",
)
_ON_PIXELS = (
    "JiGen and Shape-bias, which cut images into tiles, compute the frozen layers anew at every step, and augment by "
    "crops and flips; Shape-bias takes its styles from statistics of pixels, not from AdaIN",
    "D-SAM trains the last two layers, and joins their outputs",
)
_SSL_GPU = ("the network is chosen on validation images; the paper's release reports the best test error over time",)
_CELEBA_GPU = ("the paper leaves open: 128 pixels, momentum 0.9, weight decay 1e-4; step size of the weights 0.0005",)
_PACS_GPU = (
    "the paper leaves open: 222 pixels, momentum 0.9, weight decay 5e-4; step size of the weights 0.0005; shots are no "
    "test images",
    "ImageNet weights of ResNet18 do not ship with the package: give them with --weights",
    "Shape-bias takes its styles from statistics of pixels, not from AdaIN",
)


def _artefact(
    title: str, question: str, make: Callable[[str], Sequence[Part]], gpu: Sequence[str], cpu: Sequence[str]
) -> Artefact:
    return Artefact(
        title,
        question,
        {scale: partial(make, scale) for scale in ("cpu", "gpu")},
        {"cpu": cpu, "gpu": gpu},
        {"cpu": 5, "gpu": 3},
    )


TABLE_4 = _artefact(
    "Table 4: PACS, 5 shots per class, four target domains",
    "Do learned weights of the sources help the target?",
    _table_4,
    _PACS_GPU,
    (*_PACS_CPU, *_ON_PIXELS),
)
ARTEFACTS: dict[str, Artefact] = {
    "table1": _artefact(
        "Table 1: CIFAR-10 and SVHN with few labels",
        "Does S4L with learned weights beat uniform weights, and the other learners?",
        _table_1,
        _SSL_GPU,
        _SSL_CPU,
    ),
    "table2": _artefact(
        "Table 2: CelebA, one attribute with few labels, 39 others",
        "Do learned weights of 39 attributes beat uniform weights?",
        _table_2,
        _CELEBA_GPU,
        _CELEBA_CPU,
    ),
    "table3": _artefact(
        "Table 3: CelebA, the most and the least related attributes",
        "Which attributes get the weight, and are they the same over seeds?",
        _table_3,
        _CELEBA_GPU,
        _CELEBA_CPU,
    ),
    "table4": TABLE_4,
    "pacs": TABLE_4,
    "figure2": _artefact(
        "Figure 2: labels needed for an error",
        "Does ARML need half of the labels?",
        _figure_2,
        ("the paper does not say which numbers of labels it tried: 500 to 8 000 are ours", *_SSL_GPU),
        ("250 and 500 labels, on SVHN, too (paper: CIFAR-10)", *_SSL_CPU[:2], *_SSL_CPU[3:]),
    ),
    "figure3": _artefact(
        "Figure 3: PACS, art as target, 1 to 5 shots per class",
        "What do learned weights bring with 1 to 5 shots?",
        _figure_3,
        _PACS_GPU,
        _PACS_CPU,
    ),
    "figure4": _artefact(
        "Figure 4: PACS, art as target, weights with 1 shot, 100 shots and all",
        "Are the weights the same with few labels and with many?",
        _figure_4,
        _PACS_GPU,
        _PACS_CPU,
    ),
    "misleading": _artefact(
        "Beyond the paper: PACS, one source has wrong classes",
        "Which weightings notice it, and how near do they come to leaving it out?",
        _misleading,
        ("the paper has no such experiment", *_PACS_GPU),
        ("the paper has no such experiment", *_PACS_CPU),
    ),
}
"""Every artefact by the name that `arml reproduce` takes."""
