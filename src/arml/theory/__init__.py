"""The theory behind the weights, computed: worlds in which every distribution of the paper is known exactly.

>>> from arml.theory import Gaussian, Quadratic, World, best_weights, kl_to_truth
>>> close, far = Quadratic.of(Gaussian([0.2], [[1.0]])), Quadratic.of(Gaussian([3.0], [[1.0]]))
>>> world = World(true_prior=Gaussian([0.0], [[0.5]]), tasks=[close, far], noise=[[4.0]])
>>> best_weights(world).round(3)
array([2., 0.])
>>> round(kl_to_truth(world, [2.0, 0.0]), 3), round(kl_to_truth(world, [1.0, 1.0]), 3)
(0.04, 2.56)

Needs ``pip install arml[lab]``. A file imports only from those above it:

- ``checks``: what may be given, and errors that say so
- ``gaussian``: normal distributions and quadratic losses
- ``world``: a true prior, auxiliary tasks, labels with noise; surrogate prior and joint posterior
- ``objectives``: KL to the truth, the surrogate objective, the score objective, ARML's own slope
- ``answers``: the weights that each of them prefers
- ``expected_loss``, ``information``: what weights and priors cost in test loss, nats and labels
- ``regression``: linear regression with auxiliary tasks, and its best weights
- ``cells``, ``theorem``: Theorem 1, its constants, assumptions and bound
- ``counterexamples``: steps that do not hold as printed
- ``run_arml``: the real Reweighter and Langevin noise in a world
- ``langevin_checks``: what noise of the wrong size samples from
- ``gradient_noise``: the noise of minibatches in a real run
- ``failures``: worlds in which ARML goes wrong
- ``studies``, ``session``: all computations of ``arml theory``
- ``curves``, ``charts``, ``failure_charts``, ``section``, ``failure_sections``, ``sections``, ``page``: its page
"""

from arml.theory.answers import Answers, best_weights, find_answers, resting_weights
from arml.theory.cells import Cells, cut_into_cells
from arml.theory.expected_loss import expected_loss, labels_needed
from arml.theory.gaussian import Gaussian, ImproperPriorError, Quadratic
from arml.theory.information import information_needed
from arml.theory.objectives import kl_to_truth, score_objective, surrogate_objective
from arml.theory.regression import Regression
from arml.theory.theorem import TheoremCheck, check_theorem
from arml.theory.world import World, project

__all__ = [
    "Answers",
    "Cells",
    "Gaussian",
    "ImproperPriorError",
    "Quadratic",
    "Regression",
    "TheoremCheck",
    "World",
    "best_weights",
    "check_theorem",
    "cut_into_cells",
    "expected_loss",
    "find_answers",
    "information_needed",
    "kl_to_truth",
    "labels_needed",
    "project",
    "resting_weights",
    "score_objective",
    "surrogate_objective",
]
