"""Findings as charts."""

from collections.abc import Sequence

import numpy as np

from arml.report.charts.chart import NOT_NEGATIVE, Lines, Panel
from arml.theory.curves import bands, describe_last, line
from arml.theory.session import Findings
from arml.theory.studies import BoundsPicture
from arml.theory.theorem import TheoremCheck, lower_bound, upper_bound


def label_charts(found: Findings) -> list[Lines]:
    """KL and test loss of every rule against the number of labels."""
    study = found.labels
    losses = [
        *bands(study.labels, study.loss),
        line("main task alone", study.labels, study.main_alone),
        line("true prior", study.labels, study.with_truth),
    ]
    return [
        Lines(
            "theory-labels-kl",
            "How far from the truth is the prior that each rule chooses?",
            "KL divergence from the true prior to the surrogate prior, against labels of the main task; bands are 95 % "
            "intervals over sets of labels. " + describe_last(bands(study.labels, study.kl)),
            "labels of the main task",
            "KL to the true prior, nats",
            (Panel("", tuple(bands(study.labels, study.kl))),),
            log_x=True,
            log_y=True,
        ),
        Lines(
            "theory-labels-loss",
            "Which test loss do the weights lead to?",
            "Test loss of the main task beyond that of the true parameters, after training with each rule's weights. "
            + describe_last(losses),
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
    curves = [line(name, study.labels, loss) for name, loss in zip(study.names, study.losses, strict=True)]
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
                    line("upper bound", x, upper_bound(constants, one.closeness, one.outside)),
                    line("lower bound", x, lower_bound(constants, one.closeness, one.outside)),
                    line("f of the weights", 100 * one.points[:, 0], one.points[:, 1]),
                ),
            )
        )
    return Lines(
        "theory-bounds",
        "f lies between two bounds that know only exp(-KL)",
        "The surrogate objective of all weights of two tasks, and the bounds of the proof. Further right is closer to "
        "the truth. As in the paper the bounds are drawn for one overlap outside the support, here the mean: weights "
        "with another overlap may lie outside the curves, though not outside their own bounds.",
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
    }
    gaps = {d: max(one.gap for one in decades[d]) for d in x}
    curves = [line(name, x, values) for name, values in rows.items()]
    positive = [d for d in x if gaps[d] > 0]  # a gap of 0 has no place on a logarithmic axis
    if positive:
        curves.append(line("gap, largest", positive, [gaps[d] for d in positive]))
    worst = max((one.gap for one in applying), default=0.0)
    return Lines(
        "theory-gap",
        "What Theorem 1 promises, and what happens",
        f"{len(applying)} of {len(checks)} random worlds meet all assumptions, in groups by gamma / C2, a power of ten "
        f"each. The largest gap in any of them is {worst:.3g} nats; where no point is drawn it is 0.",
        "gamma / C2, power of ten",
        "KL(alpha-hat) - KL(alpha*), nats",
        (Panel("", tuple(curves)),),
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
        (Panel("", (line("measured", study.steps, study.measured), line("exact", study.steps, study.exact))),),
        log_x=True,
        level=1.0,
        level_title="posterior",
        bounds=NOT_NEGATIVE,
    )
