"""Models without a network, as a sceptic would try them on the same labels of a table."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from arml.lab.data.target_splits import FewLabels
from arml.lab.data.targets import Target

# scikit-learn is imported where it is used, so that training alone does not load it.
Array: TypeAlias = "np.ndarray[Any, Any]"

TREES = 200
"""Trees of a forest."""
PENALTIES = np.logspace(-2, 4, 13)
"""Penalties of a ridge regression, among which leave-one-out chooses; a logistic regression has their inverses."""


class Problem(NamedTuple):
    """What a model may learn from."""

    x: Array
    """Inputs of all rows, [N, F], standardised."""
    main: Target
    aux: Mapping[str, Target]
    """Auxiliary targets by name."""
    rows: FewLabels
    """Labels for validation are used for learning, too: these models choose by cross-validation."""
    seed: int

    def labelled(self) -> Array:
        """The rows with a main label that may be used."""
        return torch.cat([self.rows.main, self.rows.validation]).sort().values.numpy()


def fit_linear(problem: Problem) -> Tensor:
    """Logistic regression, or ridge regression for a number, on the main labels alone."""
    return _answer(problem, problem.x, _linear_model)


def fit_forest(problem: Problem) -> Tensor:
    """A random forest on the main labels alone."""
    return _answer(problem, problem.x, _forest)


def fit_stacking(problem: Problem) -> Tensor:
    """The linear model, with predictions of the auxiliary targets as further inputs.

    Forests predict them from the inputs. For their own training rows, only the trees that have not seen a row count.
    """
    predicted = [_predict_aux(problem, target) for target in problem.aux.values()]
    return _answer(problem, _join(problem, predicted), _linear_model)


def fit_aux_inputs(problem: Problem) -> Tensor:
    """The linear model, with the auxiliary columns themselves as inputs: they must be known at prediction time."""
    return _answer(problem, _join(problem, [_as_inputs(target) for target in problem.aux.values()]), _linear_model)


SIMPLE_MODELS: dict[str, Callable[[Problem], Tensor]] = {
    "linear": fit_linear,
    "forest": fit_forest,
    "stacking": fit_stacking,
    "aux_inputs": fit_aux_inputs,
}
"""Each gives answers for the test rows, [N, outputs]: logits, or numbers in the units of the target."""


def _answer(problem: Problem, x: Array, make: Callable[[Problem], Any]) -> Tensor:
    """Fits a model to the main labels, and answers for the test rows."""
    y, rows, test = problem.main.values.double().numpy(), problem.labelled(), problem.rows.test.numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # models that stop early, or classes that a fold lacks: weak, but still a line
        model = make(problem).fit(x[rows], y[rows])
        if problem.main.is_numeric:
            return torch.from_numpy(model.predict(x[test])).unsqueeze(1)
        known = np.full((len(test), len(problem.main.classes)), 1e-9)
        known[:, model.classes_.astype(int)] += model.predict_proba(x[test])
    logits = torch.from_numpy(np.log(known))
    return logits[:, 1:] - logits[:, :1] if problem.main.is_binary else logits


def _linear_model(problem: Problem) -> Any:
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    if problem.main.is_numeric:
        return RidgeCV(PENALTIES)
    least = int(problem.main.values[torch.from_numpy(problem.labelled())].long().bincount().min())
    if least < 2:  # too few labels to choose a penalty
        return LogisticRegression(max_iter=500)
    parts = StratifiedKFold(min(5, least), shuffle=True, random_state=problem.seed)
    choices = {"C": 1 / PENALTIES[::2]}
    return GridSearchCV(LogisticRegression(max_iter=500), choices, scoring="neg_log_loss", cv=parts)


def _forest(problem: Problem) -> Any:
    return _make_forest(problem.main, problem.seed)


def _make_forest(target: Target, seed: int, **settings: Any) -> Any:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    if target.is_numeric:
        return RandomForestRegressor(TREES, max_features=1 / 3, random_state=seed, **settings)
    return RandomForestClassifier(TREES, random_state=seed, **settings)


def _predict_aux(problem: Problem, target: Target) -> Array:
    """Predictions of an auxiliary target for all rows, [N, 1] or a probability per class."""
    rows = problem.rows.aux[target.present[problem.rows.aux]].numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a row that every tree has seen
        forest = _make_forest(target, problem.seed, oob_score=True, min_samples_leaf=3)
        forest.fit(problem.x[rows], target.values.numpy()[rows])
    if target.is_numeric:
        found, unseen = forest.predict(problem.x)[:, None], forest.oob_prediction_[:, None]
    else:
        found, unseen = forest.predict_proba(problem.x), forest.oob_decision_function_
    found[rows] = np.where(np.isnan(unseen), found[rows], unseen)
    return found  # type: ignore[no-any-return]


def _as_inputs(target: Target) -> Array:
    """A number as it is, or a column of 0 and 1 per class; missing labels stay NaN."""
    values = target.values.double().numpy()[:, None]
    if target.is_numeric:
        return values
    return np.where(np.isnan(values), np.nan, values == np.arange(len(target.classes)))


def _join(problem: Problem, more: list[Array]) -> Array:
    from arml.lab.data.table_features import standardise

    return np.hstack([problem.x, standardise(np.hstack(more), problem.rows.aux.numpy())])
