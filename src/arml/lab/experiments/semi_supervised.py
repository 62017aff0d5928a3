"""The paper's first setting: Table 1 and the data of Figure 2."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from arml.lab.run import LearnerName, MethodName, Run

COMPARED: tuple[LearnerName, ...] = ("supervised", "pi_model", "mean_teacher", "vat", "vat_entmin", "pseudo_label")
"""Learners that the paper puts beside S4L; the first is training on the main task only."""
WEIGHTINGS: tuple[MethodName, ...] = (
    "uniform",
    "adaloss",
    "gradnorm",
    "cosine_sim",
    "ol_aux",
    "arml",
    "arml_full",
    "gated_arml",
)
"""Ways to weigh S4L's two auxiliary tasks; arml_full is the two-stage algorithm with Langevin noise."""
GRID: tuple[MethodName, ...] = ("grid-0", "grid-0.5", "grid-1", "grid-1.5", "grid-2")
"""The grid search: weights of the first auxiliary task; the second has 2 minus that."""


_CPU = {
    "digits": Run(),
    "mnist5k": Run(dataset="mnist5k", labels=50),
    "cifar10": Run(
        dataset="cifar10", network="wrn-10-1", labels=500, steps=500, batch_labelled=32, batch_unlabelled=32
    ),
    "svhn": Run(dataset="svhn", network="wrn-10-1", labels=250, steps=500, batch_labelled=32, batch_unlabelled=32),
}


def cpu(dataset: str) -> Run:
    """Minutes on two cores. Small networks and few steps: not the paper's numbers."""
    return _CPU[dataset]


def paper(dataset: str) -> Run:
    """The protocol of the paper's appendix, with slowly moving BatchNorm statistics as in Oliver et al. (2018).

    200 000 steps of Adam, for S4L at 0.005, a fifth of that after 160 000; 128 labelled and 128 unlabelled images;
    weights learned at every step. The compared learners have the rates of Oliver et al., whom the paper quotes.
    """
    run = replace(_CPU[dataset], steps=200_000, batch_labelled=128, batch_unlabelled=128, lr=None, every=1)
    run = replace(run, window=5000, bn_momentum=0.001, evaluate_every=1000, record_every=100, checkpoint_every=1000)
    sizes = {"cifar10": 4000, "svhn": 1000}
    if dataset not in sizes:
        return run
    return replace(run, network="wrn-28-2", labels=sizes[dataset])


PRESETS = {"cpu": cpu, "paper": paper}


def table(
    base: Run,
    *,
    seeds: int,
    labels: Sequence[int],
    compared: Sequence[LearnerName],
    weightings: Sequence[MethodName],
    grid: bool,
) -> list[Run]:
    """All runs of the comparison, seed by seed, so that an unfinished sweep can already be read."""
    return [
        replace(run, seed=seed, labels=count)
        for seed in range(seeds)
        for count in labels
        for run in _rows(base, compared, weightings, grid)
    ]


def _rows(base: Run, compared: Sequence[LearnerName], weightings: Sequence[MethodName], grid: bool) -> Iterator[Run]:
    for learner in compared:
        yield replace(base, learner=learner, method="uniform")
    for method in weightings:
        yield replace(base, learner="s4l", method=method)
    for method in GRID if grid else ():
        yield replace(base, learner="s4l", method=method)
