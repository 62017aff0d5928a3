"""The computations behind the page that are more than one formula."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from arml.report.data.summary import Summary, summarise
from arml.theory.answers import best_weights, find_answers
from arml.theory.cells import Cells
from arml.theory.checks import Array
from arml.theory.expected_loss import expected_loss, labels_needed, loss_after_training, loss_without_prior
from arml.theory.gaussian import Gaussian, Quadratic
from arml.theory.information import information_needed
from arml.theory.langevin_checks import TwoSamples, energy_test, sample_by_training, stationary_covariance
from arml.theory.objectives import kl_to_truth
from arml.theory.run_arml import run_arml
from arml.theory.theorem import TheoremCheck, check_theorem
from arml.theory.world import World

RULES = ("alpha*", "alpha-hat", "alpha-dagger", "ARML at rest", "ARML as run", "equal weights")


MOST_TESTED = 400
"""Samples in a test of two samples."""


def example_world() -> World:
    """Two parameters; a close task, a related one and a misleading one; labels with noise of standard deviation 2."""
    likelihoods = (
        Gaussian([0.3, 0.1], np.eye(2)),
        Gaussian([-0.6, 0.5], [[1.0, 0.5], [0.5, 1.5]]),
        Gaussian([2.0, -2.0], 0.8 * np.eye(2)),
    )
    tasks = [Quadratic.of(likelihood) for likelihood in likelihoods]
    return World(Gaussian([0.0, 0.0], 0.1 * np.eye(2)), tasks, 4 * np.eye(2))


class LabelStudy(NamedTuple):
    """Weights by six rules against the number of labels, in :func:`example_world`."""

    labels: list[int]
    kl: dict[str, list[Summary]]
    """KL to the true prior, by rule; mean over sets of labels."""
    loss: dict[str, list[Summary]]
    """Excess test loss of the main task after training with these weights."""
    weights: dict[str, list[list[float]]]
    """Mean weights [K], by rule."""
    main_alone: list[float]
    """Expected excess loss without auxiliary tasks, exact."""
    with_truth: list[float]
    """The same with the true prior, exact."""


def study_labels(labels: Sequence[int], draws: int, runs: int, seed: int) -> LabelStudy:
    """Exact answers on ``draws`` sets of labels, and ARML itself on the first ``runs`` of them."""
    world = example_world()
    kl: dict[str, list[Summary]] = {rule: [] for rule in RULES}
    loss: dict[str, list[Summary]] = {rule: [] for rule in RULES}
    weights: dict[str, list[list[float]]] = {rule: [] for rule in RULES}
    for count in labels:
        rng = np.random.default_rng([seed, count])
        found: list[tuple[str, Array, float, float]] = []
        for number in range(draws):
            theta, main = world.draw(count, rng)
            for rule, alpha in _all_weights(world, main, run=number < runs, seed=number).items():
                found.append((rule, alpha, kl_to_truth(world, alpha), loss_after_training(world, theta, main, alpha)))
        for rule in RULES:
            own = [one for one in found if one[0] == rule]
            weights[rule].append(np.mean([alpha for _, alpha, _, _ in own], 0).tolist())
            kl[rule].append(summarise([value for _, _, value, _ in own]))
            loss[rule].append(summarise([value for _, _, _, value in own]))
    exact = [loss_without_prior(world, n) for n in labels], [expected_loss(world, world.true_prior, n) for n in labels]
    return LabelStudy(list(labels), kl, loss, weights, *exact)


def _all_weights(world: World, main: Quadratic, *, run: bool, seed: int) -> dict[str, Array]:
    answers = find_answers(world, main)
    found = dict(zip(RULES[:4], answers, strict=True)) | {"equal weights": np.ones(world.num_tasks)}
    return found | {"ARML as run": run_arml(world, main, seed=seed).alpha} if run else found


class InformationStudy(NamedTuple):
    """What priors are worth: information, KL and labels."""

    names: list[str]
    kl: list[float]
    information: list[float]
    needed: list[int]
    """Labels for an expected excess loss of ``level``."""
    level: float
    labels: list[int]
    losses: list[list[float]]
    """Expected excess loss of each prior against labels."""


def study_information(level: float = 0.02) -> InformationStudy:
    """Good and bad priors in :func:`example_world`, and none."""
    world = example_world()
    star = best_weights(world)
    priors: dict[str, Gaussian | None] = {
        "true prior": world.true_prior,
        "best weights": world.surrogate_prior(star),
        "equal weights": world.surrogate_prior(np.ones(3)),
        "misleading task only": world.surrogate_prior([0.0, 0.0, 3.0]),
        "no prior": None,
    }
    labels = [1, 2, 4, 8, 16, 32, 64, 128, 256]
    losses = [
        [loss_without_prior(world, n) if prior is None else expected_loss(world, prior, n) for n in labels]
        for prior in priors.values()
    ]
    return InformationStudy(
        list(priors),
        [np.inf if prior is None else world.true_prior.kl(prior) for prior in priors.values()],
        [np.inf if prior is None else information_needed(world.true_prior, prior) for prior in priors.values()],
        [labels_needed(world, prior, level) or 0 for prior in priors.values()],
        level,
        labels,
        losses,
    )


def random_cells(rng: np.random.Generator, cells: int = 12) -> Cells:
    """One small cell S and ``cells`` of volume 1; how much the labels and two tasks say about S is drawn at random."""
    small, mass = 10 ** rng.uniform(-8, -1), np.exp(rng.uniform(-9, -1))
    main = rng.standard_normal(cells) * rng.uniform(0, 4)
    inside = np.log(mass * np.exp(main).sum() / (1 - mass) / small)
    tasks = rng.standard_normal((2, cells)) * rng.uniform(0, 4, size=(2, 1))
    about = np.log(1 / small) + rng.uniform(-12, 3, size=2)
    return Cells([small, *np.ones(cells)], [inside, *main], np.column_stack([about, tasks]), [True, *[False] * cells])


def pairs_of_weights(number: int = 41) -> Array:
    """Weights of two tasks that sum to 2, [number, 2]."""
    first = np.linspace(0, 2, number)
    return np.stack([first, 2 - first], 1)


def sweep_theorem(worlds: int, seed: int) -> list[TheoremCheck]:
    """Theorem 1 in random worlds of cells."""
    rng, alphas = np.random.default_rng(seed), pairs_of_weights()
    return [check_theorem(random_cells(rng), alphas) for _ in range(worlds)]


class BoundsPicture(NamedTuple):
    """f between its two bounds in one world, against x = exp(-KL): the paper's figure."""

    check: TheoremCheck
    closeness: Array
    """x, for the curves."""
    outside: float
    """Z(not S; alpha), held at its mean."""
    points: Array
    """(x, f) of the weights themselves, [A, 2]."""


def picture_bounds(seed: int, *, applies: bool) -> BoundsPicture:
    """The first random world in which Theorem 1 applies, or in which only its second assumption fails."""
    rng, alphas = np.random.default_rng(seed), pairs_of_weights()
    while True:
        cells = random_cells(rng)
        check = check_theorem(cells, alphas)
        if check.small and check.related == applies and check.gap > 1e-3:
            break
    points = np.column_stack([np.exp(-cells.kl(alphas)), cells.surrogate(alphas)])
    outside = float(cells.overlap(alphas, inside=False).mean())
    return BoundsPicture(check, np.geomspace(1e-4, 1, 60), outside, points)


class LangevinStudy(NamedTuple):
    """Samples of a joint posterior with two parameters, by training with noise."""

    steps: list[float]
    """epsilon times the largest precision."""
    measured: list[float]
    """Mean variance of the samples, over that of the posterior."""
    exact: list[float]
    """The same in closed form."""
    tests: list[TwoSamples]
    """Against exact samples."""
    missing_n: tuple[float, float]
    """Measured and exact ratio of variances if 1/N is forgotten with N = 100, at the shortest step."""
    missing_test: TwoSamples
    mean_error: float
    """Largest error of the mean at the shortest step, in standard errors."""


def study_langevin(steps: Sequence[float], chains: int, seed: int) -> LangevinStudy:
    """Trains many chains at every step size."""
    world = example_world()
    target = world.joint(world.likelihood(8, [0.4, 0.2]), best_weights(world))
    steepest = float(np.linalg.eigvalsh(target.precision)[-1])
    rng = np.random.default_rng(seed)
    samples = [
        sample_by_training(target, step / steepest, chains=chains, steps=round(20 + 8 / step), seed=seed)
        for step in steps
    ]
    hot = sample_by_training(
        target, steps[0] / steepest, chains=chains, steps=round(20 + 8 / steps[0]), num_examples=100, missing_n=True
    )
    off = (samples[0].mean(0) - target.mean) / np.sqrt(np.diag(target.covariance) / chains)
    return LangevinStudy(
        list(steps),
        [_widening(np.cov(sample.T), target) for sample in samples],
        [_widening(stationary_covariance(target, step / steepest), target) for step in steps],
        [_test(sample, target, rng) for sample in samples],
        (
            _widening(np.cov(hot.T), target),
            _widening(stationary_covariance(target, steps[0] / steepest, too_hot=100), target),
        ),
        _test(hot, target, rng),
        float(np.abs(off).max()),
    )


def _test(sample: Array, target: Gaussian, rng: np.random.Generator) -> TwoSamples:
    """Against exact samples; some of the chains are enough, as the test takes all pairs."""
    some = sample[:MOST_TESTED]
    return energy_test(some, target.sample(len(some), rng), rng)


def _widening(covariance: Array, target: Gaussian) -> float:
    """The mean of the variances along the directions of ``target``, each over its own."""
    return float(np.trace(target.precision @ covariance) / target.size)
