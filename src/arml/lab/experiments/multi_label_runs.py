"""The paper's second setting: one target with few labels, the others as auxiliary tasks (Tables 2 and 3)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from arml.lab.catalogue import COMPARED_METHODS, LEARNERS, grid_for
from arml.lab.run import MethodName, split_names
from arml.lab.run_kinds import MultiLabel

_TABLE = MultiLabel(
    network="mlp-64x8",
    dropout=0.3,
    optimizer="adamw",
    weight_decay=0.3,
    lr_drop=0.5,
    lr_drop_at=(0.4, 0.55, 0.7, 0.8, 0.9),
    steps=300,
    every=5,
)
"""The network of tables: several small ones, averaged."""
_CPU = {
    "yeast": _TABLE,
    "celeba": MultiLabel(
        dataset="celeba",
        main="Smiling",  # as frequent as not, so that few labels show both
        labels=0.01,
        network="plain-64",
        image_size=32,
        batch_main=32,
        batch_aux=32,
        steps=1000,
        lr=0.002,
        weight_lr=0.0005,  # the lower end of the paper's range: with 39 gradients, 0.05 jumps to a corner at once
        every=25,
        evaluate_every=100,
        record_every=100,
    ),
    "table": replace(
        _TABLE,
        dataset="table",
        main="",
        labels=None,
        pieces=8,
        select="last",  # with few labels, a choice among networks costs more labels than it is worth
    ),
}


def cpu(dataset: str) -> MultiLabel:
    """Minutes on two cores. Small images and few steps: not the paper's numbers."""
    return replace(_CPU[dataset], method="agreement")


def paper(dataset: str) -> MultiLabel:
    """CelebA with ResNet18 from scratch: 90 epochs of batches of 256, step size 0.1, a tenth of it after every 30.

    1 % of the training images have the main label. Weights are learned at every step. What the paper leaves open is
    chosen here: momentum 0.9, weight decay 1e-4, images cropped to 178 and scaled to 128 pixels. An epoch is one pass
    over all 162 770 training images of the auxiliary tasks: 636 steps.
    """
    run = replace(_CPU[dataset], method="arml")
    if dataset != "celeba":
        return replace(run, steps=20_000, every=1, evaluate_every=500, record_every=100, checkpoint_every=500)
    return replace(
        run,
        main="5_o_Clock_Shadow",
        network="resnet18",
        optimizer="sgd",
        weight_decay=1e-4,
        image_size=128,
        batch_main=256,
        batch_aux=256,
        steps=90 * 636,
        lr=0.1,
        lr_drop=0.1,
        lr_drop_at=(1 / 3, 2 / 3),
        every=1,
        evaluate_every=636,
        record_every=100,
        checkpoint_every=636,
    )


PRESETS = {"cpu": cpu, "paper": paper}
SIMPLE = tuple(name for name, facts in LEARNERS["mlc"].items() if facts.simple)
"""Lines of a table without a network."""
ONE_TASK_METHODS = ("uniform", "agreement")
"""Methods that are compared if there is one auxiliary target: it counts in full, or as much as it proves."""
DATASETS = tuple(_CPU)


@dataclass(frozen=True)
class Table:
    """Which lines the comparison has."""

    mains: tuple[str, ...] = ()
    """Main targets to compare: one table each, and a matrix of weights over all; none: the one of --main."""
    label_counts: tuple[float, ...] = ()
    """Numbers or shares of main labels for the curve of labels against error; none: the preset's."""
    methods: tuple[MethodName, ...] = COMPARED_METHODS
    """Methods that weight the auxiliary targets."""
    main_only: bool = True
    """Also train on the main target alone."""
    forkmerge: bool = False
    """Also train ForkMerge, which takes up to twice as long as another line."""
    without: tuple[str, ...] = ()
    """Also train without each of these auxiliary targets in turn, with equal weights, to see whether it helps."""
    simple: bool = True
    """For a table: also fit logistic or ridge regression, a random forest, stacking, and a regression with the
    auxiliary columns as inputs."""
    grid: bool = False
    """With two or three auxiliary targets: also search a grid of fixed weights; validation examples choose the best."""

    def runs(self, base: MultiLabel, seeds: int) -> list[MultiLabel]:
        """All runs of the comparison, seed by seed, so that an unfinished sweep can already be reported."""
        return [
            replace(run, seed=seed, labels=count)
            for seed in range(seeds)
            for main in split_names(self.mains) or (base.main,)
            for count in self.label_counts or (base.labels,)
            for run in self._lines(replace(base, main=main, aux=self._aux(base, main)))
        ]

    def _aux(self, base: MultiLabel, main: str) -> tuple[str, ...]:
        """Where auxiliary targets are named, the other main targets join them: they must not be features."""
        named = (*base.aux, *split_names(self.mains)) if base.aux else ()
        return tuple(name for name in dict.fromkeys(named) if name != main)

    def _lines(self, base: MultiLabel) -> Iterator[MultiLabel]:
        if self.main_only:
            yield replace(base, learner="main_only", method="uniform")
        if self.forkmerge:
            yield replace(base, learner="forkmerge", method="uniform")
        points = grid_for(len(set(base.aux) - set(base.leave_out))) if self.grid else ()
        for method in (*self._methods(base), *points):
            yield replace(base, learner="joint", method=method)
        for name in split_names(self.without, base.aux):
            if name != base.main and set(base.aux) != {name}:
                yield replace(base, learner="joint", method="uniform", leave_out=(*base.leave_out, name))
        for learner in SIMPLE if base.table and self.simple else ():
            yield replace(base, learner=learner, method="uniform")

    def _methods(self, base: MultiLabel) -> tuple[MethodName, ...]:
        """With one auxiliary target, methods that share out a fixed sum are all the same: on or off is the question."""
        single = len(set(base.aux) - set(base.leave_out)) == 1
        return ONE_TASK_METHODS if single and self.methods == COMPARED_METHODS else self.methods
