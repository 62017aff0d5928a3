"""The paper's first setting: Table 1 and the data of Figure 2."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from arml.lab.catalogue import COMPARED_METHODS, GRID, LEARNERS
from arml.lab.run import MethodName
from arml.lab.run_kinds import SemiSupervised, SemiSupervisedName

COMPARED: tuple[SemiSupervisedName, ...] = tuple(name for name, facts in LEARNERS["ssl"].items() if not facts.weighted)
"""Learners that the paper compares with S4L; the first trains on the main task only."""

_CPU = {
    "digits": SemiSupervised(),
    "mnist5k": SemiSupervised(dataset="mnist5k", labels=50, network="plain-64", steps=300, lr=0.002),
    "cifar10": SemiSupervised(dataset="cifar10", network="plain-64", labels=1000, steps=500, lr=0.002),
    "svhn": SemiSupervised(dataset="svhn", network="plain-64", labels=1000, steps=500, lr=0.002),
}


def cpu(dataset: str) -> SemiSupervised:
    """A run takes seconds to two minutes on one core. Small networks and few steps: not the paper's numbers."""
    return replace(_CPU[dataset], method="agreement")


def paper(dataset: str) -> SemiSupervised:
    """The protocol of the paper's appendix, with slowly moving BatchNorm statistics as in Oliver et al. (2018).

    200 000 steps of Adam, for S4L at 0.005, a fifth of that after 160 000; 256 images per step, 128 labelled and 128
    unlabelled ones, or for supervised learning 256 labelled ones; weights learned at every step. The compared learners
    have the rates of Oliver et al., whom the paper quotes.
    """
    run = replace(_CPU[dataset], steps=200_000, batch_labelled=128, batch_unlabelled=128, lr=None, every=1)
    run = replace(run, method="arml", supervised_batch=256)
    run = replace(run, window=5000, bn_momentum=0.001, evaluate_every=1000, record_every=100, checkpoint_every=1000)
    sizes = {"cifar10": 4000, "svhn": 1000}
    if dataset not in sizes:
        return run
    return replace(run, network="wrn-28-2", labels=sizes[dataset])


PRESETS = {"cpu": cpu, "paper": paper}
DATASETS = tuple(_CPU)


@dataclass(frozen=True)
class Table:
    """Which lines the comparison has."""

    label_counts: tuple[int, ...] = ()
    """Numbers of labels for the curve of labels against error; none: the preset's."""
    learners: tuple[SemiSupervisedName, ...] = COMPARED
    """Learners to compare with S4L."""
    methods: tuple[MethodName, ...] = COMPARED_METHODS
    """Methods that weight S4L's auxiliary tasks."""
    grid: bool = True
    """Also search a grid of fixed weights; validation images choose the best. An upper bound that trains many times."""

    def runs(self, base: SemiSupervised, seeds: int) -> list[SemiSupervised]:
        """All runs of the comparison, seed by seed, so that an unfinished sweep can already be reported."""
        return [
            replace(run, seed=seed, labels=count)
            for seed in range(seeds)
            for count in self.label_counts or (base.labels,)
            for run in self._lines(base)
        ]

    def _lines(self, base: SemiSupervised) -> Iterator[SemiSupervised]:
        for learner in self.learners:
            yield replace(base, learner=learner, method="uniform")
        for method in (*self.methods, *(GRID if self.grid else ())):
            yield replace(base, learner="s4l", method=method)
