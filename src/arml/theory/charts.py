"""Findings as charts."""

from collections.abc import Mapping, Sequence

import numpy as np

from arml.report.charts.chart import NOT_NEGATIVE, Lines, Panel, Series
from arml.report.data.summary import Summary
from arml.theory.session import Findings
from arml.theory.studies import BoundsPicture
from arml.theory.theorem import TheoremCheck, lower_bound, upper_bound

SMALLEST = 1e-4
"""Lowest value on logarithmic axes."""


def label_charts(found: Findings) -> list[Lines]:
    """KL and test loss of every rule against the number of labels."""
    study = found.labels
    losses = [
        *_bands(study.labels, study.loss),
        _line("main task alone", study.labels, study.main_alone),
        _line("true prior", study.labels, study.with_truth),
    ]
    return [
        Lines(
            "theory-labels-kl",
            "How far from the truth is the prior that each rule chooses?",
            "KL divergence from the true prior to the surrogate prior, against labels of the main task; bands are 95 % "
            "intervals over sets of labels. " + _ends(_bands(study.labels, study.kl)),
            "labels of the main task",
            "KL to the true prior, nats",
            (Panel("", tuple(_bands(study.labels, study.kl))),),
            log_x=True,
            log_y=True,
        ),
        Lines(
            "theory-labels-loss",
            "Which test loss do the weights lead to?",
            "Test loss of the main task beyond that of the true parameters, after training with each rule's weights. "
            + _ends(losses),
            "labels of the main task",
            "excess test loss, nats",
            (Panel("", tuple(losses)),),
            log_x=True,
            log_y=True,
        ),
    ]


def information_chart(found: Findings) -> Lines:
    """Expected loss against labels, one line per prior."""
    study = found.information
    curves = [_line(name, study.labels, loss) for name, loss in zip(study.names, study.losses, strict=True)]
    return Lines(
        "theory-information",
        "How many labels does a good prior save?",
        f"Expected excess test loss against labels, exact. A line reaches {study.level:g} nats after "
        + ", ".join(f"{n} labels ({name})" for name, n in zip(study.names, study.needed, strict=True))
        + ".",
        "labels of the main task",
        "expected excess test loss, nats",
        (Panel("", tuple(curves)),),
        log_x=True,
        log_y=True,
        level=study.level,
        level_title="the level",
    )


def bounds_chart(pictures: Sequence[tuple[str, BoundsPicture]]) -> Lines:
    """The paper's figure of f_u and f_l, with real points between them."""
    panels = []
    for title, one in pictures:
        x = 100 * one.closeness
        constants = one.check.constants
        panels.append(
            Panel(
                title,
                (
                    _line("upper bound", x, upper_bound(constants, one.closeness, one.outside)),
                    _line("lower bound", x, lower_bound(constants, one.closeness, one.outside)),
                    _line("f of the weights", 100 * one.points[:, 0], one.points[:, 1]),
                ),
            )
        )
    return Lines(
        "theory-bounds",
        "f lies between two bounds that know only exp(-KL)",
        "The surrogate objective of all weights of two tasks, and the bounds of the proof for a fixed overlap outside the "
        "support. Further right is closer to the truth.",
        "exp(-KL), %",
        "f, nats",
        tuple(panels),
    )


def gap_chart(checks: Sequence[TheoremCheck]) -> Lines:
    """Gap and bound against gamma, by decade, in the worlds to which the theorem applies."""
    applying = [check for check in checks if check.applies]
    decades: dict[int, list[TheoremCheck]] = {}
    for check in applying:
        decades.setdefault(int(np.floor(np.log10(check.constants.gamma2 / check.constants.c2))), []).append(check)
    x = sorted(decades)
    rows = {
        "bound, median": [float(np.median([one.constants.bound() for one in decades[d]])) for d in x],
        "bound, smallest": [min(one.constants.bound() for one in decades[d]) for d in x],
        "gap, largest": [max(SMALLEST / 10, *(one.gap for one in decades[d])) for d in x],
    }
    worst = max((one.gap for one in applying), default=0.0)
    return Lines(
        "theory-gap",
        "What Theorem 1 promises, and what happens",
        f"{len(applying)} of {len(checks)} random worlds meet all assumptions, in groups by gamma / C2, a power of ten "
        f"each. The largest gap in any of them is {worst:.3g} nats.",
        "gamma / C2, power of ten",
        "KL(alpha-hat) - KL(alpha*), nats",
        (Panel("", tuple(_line(name, x, values) for name, values in rows.items())),),
        log_y=True,
    )


def langevin_chart(found: Findings) -> Lines:
    """Variance of the samples against the step size."""
    study = found.langevin
    return Lines(
        "theory-langevin",
        "Longer Langevin steps sample too widely",
        "Variance of samples over that of the joint posterior, against the step size. "
        + " ".join(
            f"At {step:g}: {got:.2f} measured, {exact:.2f} exact."
            for step, got, exact in zip(study.steps, study.measured, study.exact, strict=True)
        ),
        "step size times largest precision",
        "variance, posterior = 1",
        (Panel("", (_line("measured", study.steps, study.measured), _line("exact", study.steps, study.exact))),),
        log_x=True,
        level=1.0,
        level_title="posterior",
        bounds=NOT_NEGATIVE,
    )


def failure_charts(found: Findings) -> dict[str, Lines]:
    """One chart per way to fail, by the name of its part."""
    a, b, c, d = found.misleading, found.vanishing, found.units, found.minibatch
    misleading = [
        _line("main task alone, exact", a.distances, a.main_alone),
        _line("best weights, exact", a.distances, a.best),
        _line("best with sum K, exact", a.distances, a.best_with_sum),
        *_bands(a.distances, a.measured),
    ]
    noisy = [
        _line("exact, with the bias", d.noises, d.expected),
        *(_line(name, d.noises, values) for name, values in d.measured.items()),
    ]
    return {
        "misleading": Lines(
            "theory-misleading",
            "Every auxiliary task misleads",
            "Excess error of the main task against the distance of all three auxiliary tasks. " + _ends(misleading),
            "distance of the tasks",
            "excess squared error",
            (Panel("", tuple(misleading)),),
            bounds=NOT_NEGATIVE,
        ),
        "vanishing": Lines(
            "theory-vanishing",
            "Weight flows to a task that says nothing",
            "What the helpful task's loss is multiplied by, over training; the other task is nearly flat. "
            + _ends([_line(name, b.steps, values) for name, values in b.weights.items()]),
            "training step",
            "factor on the helpful task",
            (Panel("", tuple(_line(name, b.steps, values) for name, values in b.weights.items())),),
            bounds=NOT_NEGATIVE,
        ),
        "units": Lines(
            "theory-units",
            "Losses in other units",
            "Excess error of the main task against a factor on losses, mean over sets of examples. Left, or first, the "
            "factor is on the helpful task's loss, then on all losses.",
            "factor",
            "excess squared error",
            (
                Panel("on the helpful task's loss", tuple(_means(c.factors, c.one_loss))),
                Panel("on all losses", tuple(_means(c.factors, c.all_losses))),
            ),
            log_x=True,
            bounds=NOT_NEGATIVE,
        ),
        "minibatch": Lines(
            "theory-minibatch",
            "Noisy gradients lose weight",
            "Weight of the task that agrees with the main one, against the noise of its minibatch gradient. "
            + _ends(noisy),
            "standard deviation of its gradient",
            "weight, 1 = equal share",
            (Panel("", tuple(noisy)),),
            log_x=True,
            level=d.without_noise,
            level_title="without noise",
            bounds=NOT_NEGATIVE,
        ),
    }


def _line(name: str, x: Sequence[float], y: Sequence[float]) -> Series:
    return Series(name, [float(value) for value in x], [float(value) for value in y])


def _means(x: Sequence[float], rows: Mapping[str, Sequence[Summary]]) -> list[Series]:
    return [_line(name, x, [one.mean for one in row]) for name, row in rows.items()]


def _bands(x: Sequence[float], rows: Mapping[str, Sequence[Summary]]) -> list[Series]:
    """Curves with 95 % intervals, cut off above 0 for logarithmic axes."""
    return [
        one._replace(
            low=[max(SMALLEST, value.low) if value.n > 1 else value.mean for value in row],
            high=[value.high if value.n > 1 else value.mean for value in row],
        )
        for one, row in zip(_means(x, rows), rows.values(), strict=True)
    ]


def _ends(curves: Sequence[Series]) -> str:
    """The last value of every curve in words."""
    return f"At {curves[0].x[-1]:g}: " + ", ".join(f"{one.name} {one.y[-1]:.3g}" for one in curves) + "."
