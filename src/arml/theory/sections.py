"""Findings as sections of the page: sentences, tables and charts."""

import numpy as np

from arml.report.tables.sheet import Cell, Sheet, number, text
from arml.theory import charts
from arml.theory.counterexamples import furthest_task, three_cells, unequal_directions
from arml.theory.failure_sections import failure_sections
from arml.theory.section import Section
from arml.theory.session import Findings
from arml.theory.studies import RULES, picture_bounds
from arml.theory.theorem import last_step_as_printed


def make_sections(found: Findings) -> list[Section]:
    """The whole page, from the question to the cases in which not to trust the weights."""
    return [
        _information(found),
        _labels(found),
        _theorem(found),
        _printed_steps(),
        _langevin(found),
        *failure_sections(found),
    ]


def _information(found: Findings) -> Section:
    study = found.information
    rows = tuple(
        (text(name), _value(kl), _value(information), Cell(str(n), n))
        for name, kl, information, n in zip(study.names, study.kl, study.information, study.needed, strict=True)
    )
    heading = ("prior", "KL to the truth, nats", "information needed, nats", f"labels for a loss of {study.level:g}")
    notes = (
        "I = KL + H(p*). Parameters are real numbers, so I is known up to a constant: compare lines, not numbers.",
        "Without a prior there is no density, and KL is infinite.",
    )
    return Section(
        "information",
        "A prior is worth labels",
        (
            "Auxiliary losses, weighted, act as a prior for the main task. The closer it is to the distribution that "
            "main tasks really come from, the fewer labels are needed. A wrong prior costs more than none.",
        ),
        (Sheet("What priors are worth", heading, rows, notes),),
        (charts.information_chart(found),),
    )


def _labels(found: Findings) -> Section:
    study = found.labels
    few, many = study.labels[0], study.labels[-1]
    rows = tuple(
        (
            text(rule),
            *(text(" ".join(f"{weight:.2f}" for weight in study.weights[rule][place])) for place in (0, -1)),
            *(number(study.kl[rule][place]) for place in (0, -1)),
            *(number(study.loss[rule][place], digits=4) for place in (0, -1)),
        )
        for rule in RULES
    )
    columns = (f"{what}, n = {n}" for what in ("mean weights", "KL", "excess loss") for n in (few, many))
    start = {rule: study.kl[rule][0].mean for rule in RULES}
    numbers = f"n = {study.kl['alpha*'][0].n}, as run {study.kl['ARML as run'][0].n}"
    return Section(
        "answers",
        "Four answers to one question",
        (
            "alpha* is closest to the true prior, which nobody knows. alpha-hat minimises the surrogate objective, "
            "alpha-dagger the score objective, both from the labels alone. ARML at rest is where the mean of ARML's "
            "own step is zero; ARML as run is the real Reweighter with real Langevin noise.",
            f"With {few} label{'s' if few > 1 else ''} alpha-hat is {start['alpha-hat']:.3g} nats from the truth, "
            f"alpha-dagger {start['alpha-dagger']:.3g}, alpha* {start['alpha*']:.3g}. While the labels say less than "
            "the auxiliary tasks, the surrogate objective prefers the task that is furthest from the labels. The score "
            "objective does not: the last link repairs the first.",
        ),
        (
            Sheet(
                "Weights of a close, a related and a misleading task",
                ("rule", *columns),
                rows,
                (f"Mean ± 95 % interval over sets of labels; {numbers}.",),
            ),
        ),
        tuple(charts.label_charts(found)),
    )


def _theorem(found: Findings) -> Section:
    checks = found.theorem
    applying = [check for check in checks if check.applies]
    broken = sum(not check.holds for check in applying)
    idle = sum(check.constants.bound() > check.kl_hat for check in applying)
    kinds = (
        ("condition on gamma", sum(check.small for check in checks)),
        ("assumption 2: some task is related", sum(check.related for check in checks)),
        ("both: the theorem applies", len(applying)),
        ("the bound is broken there", broken),
        ("the bound exceeds KL(alpha-hat) itself", idle),
    )
    pictures = [
        (title, picture_bounds(found.plan.seed, applies=applies))
        for title, applies in (("the theorem applies", True), ("no task is related enough", False))
    ]
    return Section(
        "theorem",
        "Theorem 1, checked",
        (
            "In worlds of finitely many cells the theorem's first assumption holds exactly. The other two hold in "
            f"{len(applying)} of {len(checks)} random worlds. There its bound was broken {broken} times.",
            f"The bound is loose: in {idle} of {len(applying)} worlds it exceeds KL(alpha-hat) itself, which needs no "
            "theorem. And wherever it applies it cannot be smaller than (2 gamma / C2)(1 - C1 / 2): of first order in "
            "gamma, not of second.",
        ),
        (Sheet("Random worlds", ("", "worlds"), tuple((text(name), Cell(str(n), n)) for name, n in kinds)),),
        (charts.bounds_chart(pictures), charts.gap_chart(checks)),
    )


def _printed_steps() -> Section:
    cells, directions = three_cells(), unequal_directions()
    left, right = last_step_as_printed(0.5, 0.25)
    rows = (
        ("-log(a - b) <= -log a + b", f"a = 0.5, b = 0.25: {left:.3f} against {right:.3f}"),
        (
            "KL(alpha-dagger) <= KL(alpha-hat) + gamma2 / C2",
            f"three cells: {cells.kl_dagger:.2f} against {cells.kl_hat + cells.allowance:.2f}",
        ),
        (
            "least Fisher divergence = least KL",
            f"two tasks of equal covariance: first weight {directions.by_fisher:.2f} against {directions.by_kl:.2f}",
        ),
        (
            "least f = closest to the labels",
            f"one dimension, precision 1 of the labels, 3 of the prior: f changes by {furthest_task(1, 3, 2):.3f} when "
            "the prior moves 2 away",
        ),
    )
    return Section(
        "printed",
        "Steps that do not hold as printed",
        (
            "The proof of Theorem 1 holds. The argument that carries it over to the score objective does not, in three "
            "places; and the surrogate objective is no divergence.",
        ),
        (Sheet("Counter-examples", ("printed", "numbers"), tuple((text(a), text(b)) for a, b in rows)),),
    )


def _langevin(found: Findings) -> Section:
    study = found.langevin
    tests = tuple(
        (text(f"{step:g}"), _value(got), _value(exact), _value(test.p_value))
        for step, got, exact, test in zip(study.steps, study.measured, study.exact, study.tests, strict=True)
    )
    missing = (text("0.1, without 1/N"), *(_value(one) for one in study.missing_n), _value(study.missing_test.p_value))
    names = ("gradient", "injected", "gradient_plain", "injected_plain", "injected_as_printed")
    words = (
        "gradient noise, through Adam",
        "injected noise, through Adam",
        "gradient noise, plain step",
        "injected noise, plain step, 2 eps / N",
        "injected noise, plain step, 2 eps as printed",
    )
    steps = sorted({one.step for one in found.noise})
    sizes = tuple(
        (
            text(word),
            *(
                _value(float(np.mean([getattr(one, name) for one in found.noise if one.step == step])))
                for step in steps
            ),
        )
        for name, word in zip(names, words, strict=True)
    )
    return Section(
        "langevin",
        "Noise that samples",
        (
            f"With short steps the samples have the right mean (off by at most {study.mean_error:.1f} standard errors) "
            "and nearly the right covariance. Longer steps widen it by 1 / (1 - eps p / 2). Noise for a sum, put on a "
            f"mean over 100 examples, widens it {study.missing_n[0]:.0f}-fold.",
            "The paper's table says that gradient noise is about 1e-6 and injected noise about 1e-3. Below are ours, "
            "from a semi-supervised run on digits: the order is the same.",
        ),
        (
            Sheet(
                "Samples against the joint posterior",
                ("step times precision", "variance, measured", "variance, exact", "p-value of the energy test"),
                (*tests, missing),
            ),
            Sheet(
                "Noise that one step adds to a shared parameter",
                ("standard deviation, median over parameters", *(f"step {step}" for step in steps)),
                sizes,
                (f"Mean over {len({one.seed for one in found.noise})} seeds.",),
            ),
        ),
        (charts.langevin_chart(found),),
    )


def _value(given: float) -> Cell:
    # Exact zeros come out as rounding errors.
    value = 0.0 if abs(given) < 1e-12 else given
    return Cell(f"{value:.3g}", value) if np.isfinite(value) else Cell("∞")
